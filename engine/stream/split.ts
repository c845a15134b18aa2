import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../json.ts';
import type { NeededRows } from './stream.ts';

/** The rows of a source in parts that threads can read independently. */
export interface SourceSplits {
  /** The columns of every split. */
  readonly schema: Schema;
  /** In row order. */
  readonly splits: readonly SourceSplit[];
  /**
   * Upper bounds for the numbers of distinct values of columns, counting null as a value, if known without
   * reading rows.
   */
  readonly mostValues?: Readonly<Record<string, number>>;
  /** Called in the calling thread once all splits were read. Throws DataError if a file changed meanwhile. */
  whenRead?(): void;
}

/** The version of a file on disk, as plain JSON. */
export type FileStamp = JsonObject & {
  /** Device number and inode. */
  readonly id: string;
  /** Bytes; later ones are not read. */
  readonly size: number;
  /** Modification time: nanoseconds since 1970, in decimal digits. */
  readonly modified: string;
  /** True if rows may be appended while the file is read. */
  readonly grows: boolean;
};

/**
 * A part of one file, or all of it, as plain JSON with all that another thread needs to read it. A split has
 * about the requested size, or less; the reader combines small ones, so a format need not.
 */
export type SourceSplit = JsonObject & {
  /** The name under which the format's `ReadSplit` is found (connectors/read-split.ts). */
  readonly format: string;
  readonly file: string;
  /** The version of the file when it was cut; absent if it has none. */
  readonly stamp?: FileStamp;
  /** Approximate stored bytes. */
  readonly bytes: number;
  /** Number of rows, if known without reading them. */
  readonly rows?: number;
  /** Set if a file is cut by bytes, and the ends of records are only known when they are read. */
  readonly range?: ByteRange;
};

/**
 * The records that start in [from, to) of a file. If `known`, a record starts at `from`, and `rows` and
 * `lines` count the file before it. Otherwise `from` can be inside a record: the first record is assumed to
 * start after the first line end at or after byte `from - 1`, and rows and lines are counted from there.
 * `SplitEnd` shows a wrong guess (a line end inside quotes): the range is then read again, known.
 */
export type ByteRange = JsonObject & {
  readonly from: number;
  readonly to: number;
  readonly known: boolean;
  readonly rows: number;
  readonly lines: number;
};

/** The result of reading a byte range. */
export type SplitEnd = {
  /** The byte at which its first record started. */
  readonly startsAt: number;
  /**
   * The byte after its last record, where the first record of the next range starts; `startsAt` if no record
   * starts in the range.
   */
  readonly endsAt: number;
  /** Number of lines in its records. */
  readonly lines: number;
};

export interface ReadSplitOptions {
  readonly signal: AbortSignal;
  /** See ValueNeeds. */
  readonly takesFaults: boolean;
  /**
   * True if the consumer no longer uses a batch when it pulls the next one: the batch may be in memory that
   * is then reused.
   */
  readonly borrowed?: boolean;
  /**
   * True for a thread with no other work: file system calls may block it. Otherwise they run in Node's own
   * threads, which the whole process shares.
   */
  readonly waits?: boolean;
  /** The rows that the consumer needs at the moment; undefined: all. Others may be left out. */
  readonly needed?: () => NeededRows | undefined;
}

/**
 * Reads the rows of a split, in any thread: the batches that the source's stream would give, with their
 * origins, under `schema` (of SourceSplits, or fewer of its columns). Throws the same errors as the stream.
 * Returns the end of a byte range. Leaving the loop early frees everything.
 */
export type ReadSplit = (
  split: SourceSplit,
  schema: Schema,
  options: ReadSplitOptions,
) => AsyncGenerator<RecordBatch, SplitEnd | undefined>;
