/** Transfers between host and GPU memory since the counters were created, counted on submission. */
export interface TransferCounts {
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly uploads: number;
  readonly readbacks: number;
}

export class TransferCounters {
  #bytesUp = 0;
  #bytesDown = 0;
  #uploads = 0;
  #readbacks = 0;

  up(bytes: number): void {
    this.#bytesUp += bytes;
    this.#uploads++;
  }

  down(bytes: number): void {
    this.#bytesDown += bytes;
    this.#readbacks++;
  }

  since({ bytesUp, bytesDown }: TransferCounts): { readonly bytesUp: number; readonly bytesDown: number } {
    return { bytesUp: this.#bytesUp - bytesUp, bytesDown: this.#bytesDown - bytesDown };
  }

  get counts(): TransferCounts {
    return {
      bytesUp: this.#bytesUp,
      bytesDown: this.#bytesDown,
      uploads: this.#uploads,
      readbacks: this.#readbacks,
    };
  }
}
