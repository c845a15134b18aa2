/** Addresses of arrays in a thread's scratch memory, one after the other, each aligned to 64 bytes. */
export class ScratchAddresses {
  readonly #start: number;
  #end: number;

  constructor(start: number) {
    [this.#start, this.#end] = [start, start];
  }

  /** The address of an array of `bytes` bytes. */
  readonly take = (bytes: number): number => {
    const at = this.#end;
    this.#end += 64 * Math.ceil(bytes / 64);
    return at;
  };

  /** The first address after all arrays. */
  get end(): number {
    return this.#end;
  }

  /** Bytes of all arrays. */
  get bytes(): number {
    return this.#end - this.#start;
  }
}
