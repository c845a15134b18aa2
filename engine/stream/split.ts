import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../json.ts';

/** The rows of a source, cut into parts that threads can read by themselves. */
export interface SourceSplits {
  /** The columns of every split. */
  readonly schema: Schema;
  /** In the order of rows. */
  readonly splits: readonly SourceSplit[];
  /**
   * The most values that columns can have, a null among them, as far as that is known without reading rows.
   */
  readonly mostValues?: Readonly<Record<string, number>>;
  /**
   * Called in the calling thread once all splits were read. Throws DataError for a file that changed meanwhile.
   */
  whenRead?(): void;
}

/** The version of a file of the disk, as plain JSON. */
export type FileStamp = JsonObject & {
  /** The device and the number of the file there. */
  readonly id: string;
  /** Bytes; no others are read. */
  readonly size: number;
  /** Nanoseconds since 1970, in decimal digits. */
  readonly modified: string;
  /** True where rows may be added at the end while the file is read. */
  readonly grows: boolean;
};

/**
 * A part of one file, or all of it, as plain JSON: all that another thread needs to read it. A split is about
 * as large as was asked for, or smaller; the reader puts small ones together, so a format need not.
 */
export type SourceSplit = JsonObject & {
  /** The name under which the format's `ReadSplit` is found (connectors/read-split.ts). */
  readonly format: string;
  readonly file: string;
  /** The version of the file that was cut; absent where it has none. */
  readonly stamp?: FileStamp;
  /** Bytes as stored, about. */
  readonly bytes: number;
  /** Rows, where they are known without reading them. */
  readonly rows?: number;
  /** Present where a file is cut by bytes, and the ends of records are known only when they are read. */
  readonly range?: ByteRange;
};

/**
 * The records that begin in [from, to) of a file. Where `known`, a record begins at `from`, and `rows` and
 * `lines` are those of the file before it. Otherwise `from` lies anywhere: the first record is taken to begin
 * behind the first line end at or behind the byte `from - 1`, and rows and lines are counted from there. A
 * guess that is wrong (a line end inside quotes) shows in `SplitEnd`: the range is then read again, known.
 */
export type ByteRange = JsonObject & {
  readonly from: number;
  readonly to: number;
  readonly known: boolean;
  readonly rows: number;
  readonly lines: number;
};

/** The end of a byte range, once it is read. */
export type SplitEnd = {
  /** The byte at which its first record began. */
  readonly startsAt: number;
  /**
   * The byte behind its last record, where the first one of the next range begins; `startsAt` where no record
   * begins in the range.
   */
  readonly endsAt: number;
  /** Lines of its records. */
  readonly lines: number;
};

export interface ReadSplitOptions {
  readonly signal: AbortSignal;
  /** See ValueNeeds. */
  readonly takesFaults: boolean;
  /**
   * True for a consumer that is done with a batch when it pulls the next one: a batch may lie in memory that
   * is then used again.
   */
  readonly borrowed?: boolean;
  /**
   * True for a thread that does nothing else meanwhile: calls of the file system may wait in it. Others go by
   * way of Node's own threads, which the whole process shares.
   */
  readonly waits?: boolean;
}

/**
 * Reads the rows of a split, in any thread: the batches that the source's stream would give, with their
 * origins, under `schema` (that of SourceSplits, or fewer of its columns). Throws what the stream would
 * throw. Returns the end of a byte range. Leaving the loop early frees everything.
 */
export type ReadSplit = (
  split: SourceSplit,
  schema: Schema,
  options: ReadSplitOptions,
) => AsyncGenerator<RecordBatch, SplitEnd | undefined>;
