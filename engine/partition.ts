import type { JsonObject } from './json.ts';

/** A partition in a spill file (see SpillWriter), as plain JSON: all that another thread needs to read it. */
export type SpilledPartition = JsonObject & {
  readonly file: string;
  /** Its index in the file. */
  readonly number: number;
  readonly layout: string;
  readonly rows: number;
  /** Checksum of the bytes of all columns, in order. */
  readonly checksum: number;
  /**
   * For a partition whose only column consists of pieces: the end of each piece, in elements, and the
   * checksum of all bytes up to it.
   */
  readonly pieces?: { readonly ends: readonly number[]; readonly checksums: readonly number[] };
  /** By name: the typed array's kind, its first byte in the file, and its length in elements. */
  readonly columns: Readonly<
    Record<string, { readonly kind: ColumnKind; readonly at: number; readonly length: number }>
  >;
};

/** Typed arrays that may be views of a SharedArrayBuffer and be passed to threads without a copy. */
export type SharedColumn =
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | Uint8Array
  | Uint16Array
  | BigInt64Array;

const arrays = {
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  Uint8Array,
  Uint16Array,
  BigInt64Array,
};

/** The name of a column's type in messages between threads and in files. */
export type ColumnKind = keyof typeof arrays;

export const columnTypes: Readonly<
  Record<
    ColumnKind,
    {
      new (buffer: ArrayBufferLike, at?: number, length?: number): SharedColumn;
      readonly BYTES_PER_ELEMENT: number;
    }
  >
> = arrays;

/**
 * Names one version of one partition of a data set; tasks name their inputs and outputs this way. `partition`
 * counts from 0 within the data set `name`; `version` grows when the data set is computed anew.
 */
export interface PartitionRef {
  readonly name: string;
  readonly partition: number;
  readonly version: number;
}

/** The first version of a partition of a data set. */
export function partitionRef(name: string, partition = 0): PartitionRef {
  return { name, partition, version: 0 };
}

export function partitionKey(ref: PartitionRef): string {
  return `${ref.name}/${ref.partition}@${ref.version}`;
}

/**
 * A partition in host memory: named columns over SharedArrayBuffers. `layout` names the meaning of the
 * columns, defined with the tasks that use it; `rows` is the number of rows (not of child values).
 */
export interface Partition {
  readonly layout: string;
  readonly rows: number;
  readonly columns: Readonly<Record<string, SharedColumn>>;
  /** For a matrix of factors: rows are stored without padding, if the device computes in host memory. */
  readonly packed?: boolean;
  /**
   * For a matrix of factors whose rows have the padding of the receiving device: the number of columns
   * without padding.
   */
  readonly width?: number;
  /**
   * True if another partition will reuse the memory of the columns when this one is released. The memory
   * then does not count as garbage to collect.
   */
  readonly reused?: boolean;
  /**
   * For a column that consists of pieces, which tasks may take one by one: the end of each piece, in
   * elements.
   */
  readonly ends?: readonly number[];
  /**
   * In place of columns, for a partition in a file of the spill folder: tasks of the CPU read it from there.
   */
  readonly spilled?: SpilledPartition;
  /** For a result of a run whose home is a file, or a partition given to one in a file. */
  readonly stored?: StoredColumn;
  /** Used in place of columns for rows that are being sent between devices. */
  readonly inFiles?: InFiles;
}

/** The only column of a partition in a file that a run hands out or is given. */
export interface StoredColumn {
  /** Reads it. Throws DataError if the file was changed or removed. */
  read(): SharedColumn;
  /** Removes the file, unless other partitions in it are still used. */
  drop(): void;
}

/**
 * Host memory in memory files (memfd): system threads copy to and from them while the caller runs. Pieces
 * are distributed over the files in turn: piece i is in file i mod n (n files), after that file's earlier
 * pieces.
 */
export interface FileMemory {
  /** Open descriptors, which all threads of the process share. */
  readonly files: readonly number[];
  readonly pieceBytes: number;
  /** Capacity in bytes. */
  readonly bytes: number;
}

/** Rows in memory files, as float32, float16 or 8-bit numbers. */
export interface InFiles {
  readonly memory: FileMemory;
  readonly form: 'f32' | 'f16' | 'i8';
  readonly bytes: number;
  /**
   * A number for each piece, in shared memory: 0 until the piece has been written, then 1. A device can read
   * the first pieces while later ones are still written. -1: the piece will not arrive, since the sender
   * failed.
   */
  readonly arrived?: Int32Array;
}

/**
 * A row-major float32 matrix in a device's own memory. `stride` >= `columns`, both in elements; padding is 0.
 */
export interface MatrixShape {
  /**
   * Default: factors. With any other layout, the matrix is a vector of `rows` float32 numbers (column
   * `values`) in memory that both host and device can access.
   */
  readonly layout?: string;
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
  /**
   * 'any': the contents are undefined. The first task that uses the matrix writes all of it, including the
   * padding. Default: zeros.
   */
  readonly contents?: 'zeros' | 'any';
  /** In host memory without padding; see Partition. */
  readonly packed?: boolean;
  /**
   * True for a matrix that will be sent to another device; `stride` is then that device's. A device that
   * computes in host memory allocates such a matrix outside its kernels' memory.
   */
  readonly isSent?: boolean;
  /**
   * True if tasks read only the float16 copy of the matrix. A device that makes such copies then stores only
   * the copy.
   */
  readonly halfOnly?: boolean;
}

export function partitionBytes(partition: Partition): number {
  let bytes = partition.inFiles?.bytes ?? 0;
  for (const column of Object.values(partition.columns)) bytes += column.byteLength;
  return bytes;
}

/** A piece of a partition's only column; a column without pieces is one piece. */
export function pieceOf({ columns, ends }: Pick<Partition, 'columns' | 'ends'>, piece: number): SharedColumn {
  const [column] = Object.values(columns);
  return ends === undefined ? column : column.subarray(piece === 0 ? 0 : ends[piece - 1], ends[piece]);
}

const hasSharedMemory = typeof SharedArrayBuffer !== 'undefined';

/**
 * Zeroed memory that threads can share; on a page that is not cross-origin isolated, which has no shared
 * memory and one thread, ordinary memory.
 */
function sharedBuffer(bytes: number, options?: { readonly maxByteLength: number }): ArrayBufferLike {
  return hasSharedMemory ? new SharedArrayBuffer(bytes, options) : new ArrayBuffer(bytes);
}

export function isShared(buffer: ArrayBufferLike): buffer is SharedArrayBuffer {
  return hasSharedMemory && buffer instanceof SharedArrayBuffer;
}

/** A zeroed typed array over fresh shared memory. */
export function sharedArray<T extends SharedColumn>(
  type: { new (buffer: ArrayBufferLike): T; readonly BYTES_PER_ELEMENT: number },
  length: number,
): T {
  return new type(sharedBuffer(length * type.BYTES_PER_ELEMENT));
}

/** A copy of numbers in shared memory. */
export function sharedCopy<T extends SharedColumn>(values: T): T {
  const type = values.constructor as { new (buffer: ArrayBufferLike): T; readonly BYTES_PER_ELEMENT: number };
  const copy = sharedArray(type, values.length);
  copy.set(values as never);
  return copy;
}

/** Arrays of at least this size get their own pages. */
const PAGED_BYTES = 1 << 20;

/**
 * Like sharedArray, but the system gets the pages back as soon as the array is collected. Use it for data
 * that is allocated and freed piece by piece: if the process's allocator is fragmented, it keeps the memory
 * of other arrays of some megabytes. A growable buffer has its own pages, even if its maximum is its initial
 * size.
 */
export function pagedArray<T extends SharedColumn>(
  type: {
    new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): T;
    readonly BYTES_PER_ELEMENT: number;
  },
  length: number,
): T {
  const bytes = length * type.BYTES_PER_ELEMENT;
  return bytes < PAGED_BYTES
    ? sharedArray(type, length)
    : new type(sharedBuffer(bytes, { maxByteLength: bytes }), 0, length);
}

let dataSets = 0;

/** A data set name that is unique in this process. */
export function dataSetName(base: string): string {
  dataSets++;
  return `${base}#${dataSets}`;
}
