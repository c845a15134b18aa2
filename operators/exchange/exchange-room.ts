/** The host memory that exchanges of a session may take together; what it does not hold goes to files. */
export class ExchangeRoom {
  readonly bytes: number;
  #taken = 0;

  constructor(bytes = Number.POSITIVE_INFINITY) {
    this.bytes = bytes;
  }

  /** Takes memory; false where there is not so much, and none is taken. */
  take(bytes: number): boolean {
    if (this.#taken + bytes > this.bytes) return false;
    this.#taken += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#taken -= bytes;
  }
}
