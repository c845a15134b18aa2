/** What went between the host and a GPU's memory, since the counters were made. */
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
  #told = { bytesUp: 0, bytesDown: 0 };

  up(bytes: number): void {
    this.#bytesUp += bytes;
    this.#uploads++;
  }

  down(bytes: number): void {
    this.#bytesDown += bytes;
    this.#readbacks++;
  }

  /** What went since this was asked last. */
  sinceLast(): { readonly bytesUp: number; readonly bytesDown: number } {
    const { bytesUp, bytesDown } = this.counts;
    const since = { bytesUp: bytesUp - this.#told.bytesUp, bytesDown: bytesDown - this.#told.bytesDown };
    this.#told = { bytesUp, bytesDown };
    return since;
  }

  get counts(): TransferCounts {
    return { bytesUp: this.#bytesUp, bytesDown: this.#bytesDown, uploads: this.#uploads, readbacks: this.#readbacks };
  }
}
