/** Buffers that wait for the next reader, at most: those of two visits of a stage. */
const MOST_IDLE = 4;

/** Whole buffers of this many bytes serve partitions of about one size. */
const STEP_BYTES = 1 << 20;

/**
 * Shared memory that is used again and again: what is let go of is collected late, so that new memory for
 * each partition would pile up.
 *
 */
export class StagingBuffers {
  /** The largest first. */
  readonly #idle: SharedArrayBuffer[] = [];

  /** At least so many bytes, whose contents are those of an earlier use. */
  take(bytes: number): SharedArrayBuffer {
    const smallest = this.#idle.findLastIndex(({ byteLength }) => byteLength >= bytes);
    if (smallest >= 0) return this.#idle.splice(smallest, 1)[0];
    return new SharedArrayBuffer(Math.max(1, Math.ceil(bytes / STEP_BYTES)) * STEP_BYTES);
  }

  /** The smallest are dropped where there are too many. */
  give(buffer: SharedArrayBuffer): void {
    this.#idle.push(buffer);
    this.#idle.sort((left, right) => right.byteLength - left.byteLength);
    this.#idle.length = Math.min(this.#idle.length, MOST_IDLE);
  }

  clear(): void {
    this.#idle.length = 0;
  }
}
