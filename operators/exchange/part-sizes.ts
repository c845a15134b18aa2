/** Stored bytes of a task that reads. Sources that have no more come in one stream. */
export const SPLIT_BYTES = 2 << 20;

const MOST_PARTS = 1024;

/** Parts of a stream whose bytes are not known. */
const STREAM_PARTS = 128;

/** The sizes of an exchange, in bytes of rows in memory; all follow from the stored bytes of a task. */
export class PartSizes {
  /** Bytes of a part: each thread needs some times as many, with the state of operators. */
  readonly part: number;
  /** Fewest bytes that a task takes: smaller parts are taken together. */
  readonly unit: number;
  /**
   * Most bytes of the streamed side of a join that a task takes, where it may be cut: a key may have many
   * rows.
   */
  readonly streamed: number;
  /** Most bytes of a side of a join that every task takes whole. */
  readonly broadcast: number;
  /** Bytes of a stream that are one task's. */
  readonly ofStream: number;

  constructor(splitBytes = SPLIT_BYTES) {
    this.part = 4 * splitBytes;
    this.unit = 2 * splitBytes;
    this.streamed = 16 * splitBytes;
    this.broadcast = 8 * splitBytes;
    this.ofStream = 4 * splitBytes;
  }

  /**
   * The number of parts for rows of `bytes` bytes; it depends on nothing else, so neither does the order of
   * rows.
   */
  partsOf(bytes: number | undefined): number {
    if (bytes === undefined) return STREAM_PARTS;
    return Math.max(1, Math.min(MOST_PARTS, Math.ceil(bytes / this.part)));
  }
}
