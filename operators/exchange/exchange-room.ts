/** Host memory that exchanges may take together; what it does not hold goes to files. */
export class ExchangeRoom {
  readonly bytes: number;
  readonly #parent: ExchangeRoom | undefined;
  #taken = 0;

  constructor(bytes = Number.POSITIVE_INFINITY, parent?: ExchangeRoom) {
    [this.bytes, this.#parent] = [bytes, parent];
  }

  /** The same memory for the length of one run, at whose end `close` gives back all that the run has taken. */
  lease(): ExchangeRoom {
    return new ExchangeRoom(this.bytes, this);
  }

  /** Takes memory; false where there is not so much, and none is taken. */
  take(bytes: number): boolean {
    if (this.#taken + bytes > this.bytes || this.#parent?.take(bytes) === false) return false;
    this.#taken += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#taken -= bytes;
    this.#parent?.give(bytes);
  }

  close(): void {
    this.give(this.#taken);
  }
}
