/** Bytes of files that one task reads. A smaller source is read as one stream. */
export const SPLIT_BYTES = 2 << 20;

const MOST_PARTS = 1024;

/** Number of parts of a stream of unknown size. */
const STREAM_PARTS = 128;

/**
 * Sizes of the parts and tasks of an exchange, in bytes of rows in memory. All are multiples of `splitBytes`,
 * the bytes that a task reads.
 */
export class PartSizes {
  /** Bytes of a part. Each thread needs a multiple of it, for the operators' state. */
  readonly part: number;
  /** Fewest bytes for one task; smaller parts are combined. */
  readonly unit: number;
  /**
   * Most bytes of the streamed side of a join for one task. A larger part is cut, since one key may have very
   * many rows.
   */
  readonly streamed: number;
  /** Most bytes of a join's side that every task reads completely. */
  readonly broadcast: number;
  /** Bytes of rows for one task if the input is one stream. */
  readonly ofStream: number;

  constructor(splitBytes = SPLIT_BYTES) {
    this.part = 4 * splitBytes;
    this.unit = 2 * splitBytes;
    this.streamed = 16 * splitBytes;
    this.broadcast = 8 * splitBytes;
    this.ofStream = 4 * splitBytes;
  }

  /**
   * Number of parts for rows of `bytes` bytes. It depends only on `bytes`, and so does the order of the
   * resulting rows.
   */
  partsOf(bytes: number | undefined): number {
    if (bytes === undefined) return STREAM_PARTS;
    return Math.max(1, Math.min(MOST_PARTS, Math.ceil(bytes / this.part)));
  }
}
