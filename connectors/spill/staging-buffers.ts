/** Most unused buffers to keep: enough for two visits of a stage to data in files. */
const MOST_IDLE = 4;

/** Sizes are multiples of this, so that partitions of about the same size can share buffers. */
const STEP_BYTES = 1 << 20;

/**
 * A pool of shared memory. Released shared memory is garbage-collected late, so new memory for each partition
 * would pile up.
 */
export class StagingBuffers {
  /** Largest first. */
  readonly #idle: SharedArrayBuffer[] = [];

  /** A buffer of at least `bytes` bytes; it may have old contents. */
  take(bytes: number): SharedArrayBuffer {
    const smallest = this.#idle.findLastIndex(({ byteLength }) => byteLength >= bytes);
    if (smallest >= 0) return this.#idle.splice(smallest, 1)[0];
    return new SharedArrayBuffer(Math.max(1, Math.ceil(bytes / STEP_BYTES)) * STEP_BYTES);
  }

  /** Drops the smallest buffers if there are too many. */
  give(buffer: SharedArrayBuffer): void {
    this.#idle.push(buffer);
    this.#idle.sort((left, right) => right.byteLength - left.byteLength);
    this.#idle.length = Math.min(this.#idle.length, MOST_IDLE);
  }

  clear(): void {
    this.#idle.length = 0;
  }
}
