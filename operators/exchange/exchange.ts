import type { JsonObject } from '../../engine/json.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';

/**
 * The rule by which an exchange divides rows among parts.
 *
 *     hash     rows with the same values of some columns are in one part
 *     range    in the order of sort keys, all rows of a part are before all rows of the next part
 *     evenly   round-robin
 */
export type Exchange =
  | (JsonObject & { readonly kind: 'hash'; readonly columns: readonly string[] })
  | (JsonObject & { readonly kind: 'range'; readonly keys: readonly SortKey[] })
  | (JsonObject & { readonly kind: 'evenly' });

export function describeExchange(by: Exchange): string {
  if (by.kind === 'hash') return `by hash of ${by.columns.join(', ')}`;
  return by.kind === 'range' ? `by ranges of ${by.keys.map(({ column }) => column).join(', ')}` : 'evenly';
}

/**
 * A task that divides its rows stores them in at most this number of partitions, each with the rows of
 * consecutive parts. There may be a thousand parts, and the calling thread keeps an entry for each partition.
 */
const MOST_PARTITIONS = 32;

/**
 * Fewest bytes of a partition, unless the task has fewer. A partition of this size has memory pages of its
 * own, so its memory returns to the system when it is freed.
 */
const LEAST_BYTES = 1 << 20;

export function mostPartitions(parts: number): number {
  return Math.min(parts, MOST_PARTITIONS);
}

/**
 * Combines consecutive parts into at most MOST_PARTITIONS partitions of at least LEAST_BYTES; the last may be
 * smaller. Returns the index of each partition's first part, which is never empty. Empty parts before the
 * first partition are in none; other empty parts belong to the partition before them.
 */
export function partitionsOf(bytes: readonly number[]): number[] {
  const total = bytes.reduce((sum, part) => sum + part, 0);
  const least = Math.max(LEAST_BYTES, total / mostPartitions(bytes.length));
  const firsts: number[] = [];
  let own = least;
  for (const [part, more] of bytes.entries()) {
    if (own >= least && more > 0) {
      firsts.push(part);
      own = 0;
    }
    own += more;
  }
  return firsts;
}

/** Parameters of a task that divides its rows. */
export type ExchangeParams = JsonObject & {
  readonly by: Exchange;
  readonly parts: number;
  /** Number of the task within the exchange, in the order of rows. */
  readonly task: number;
};

/** Bytes of files that one task reads. A smaller source is read as one stream. */
export const SPLIT_BYTES = 2 << 20;
/** Most rows that one task reads, unless one range of a file has more: a few columns of many rows are few bytes. */
export const SPLIT_ROWS = 1 << 19;

const MOST_PARTS = 1024;

/** Number of parts of a stream of unknown size. */
const STREAM_PARTS = 128;

/**
 * Sizes of the parts and tasks of an exchange, in bytes of rows in memory. They depend on `splitBytes`,
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
    this.part = 2 * splitBytes;
    this.unit = splitBytes / 4;
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
