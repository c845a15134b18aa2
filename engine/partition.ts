import type { JsonObject } from './json.ts';

/** A partition in a spill file (see SpillWriter), as plain JSON: all that another thread needs to read it. */
export type SpilledPartition = JsonObject & {
  readonly file: string;
  /** Its number in the file. */
  readonly number: number;
  readonly layout: string;
  readonly rows: number;
  /** Of the bytes of all columns, in order. */
  readonly checksum: number;
  /**
   * Of pieces of its only column: the end of each, in elements, and the checksum of all bytes up to there.
   */
  readonly pieces?: { readonly ends: readonly number[]; readonly checksums: readonly number[] };
  /** By name: the typed array's kind, its first byte in the file, and its length in elements. */
  readonly columns: Readonly<
    Record<string, { readonly kind: ColumnKind; readonly at: number; readonly length: number }>
  >;
};

/** Typed arrays that may lie in a SharedArrayBuffer and cross threads without a copy. */
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

/** The name of a column's type, by which other threads and files know it. */
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
 * The name of one version of one partition of a data set. Tasks name their inputs and outputs so.
 * `partition` counts from 0 within the data set `name`; `version` grows when the data set is computed anew.
 */
export interface PartitionRef {
  readonly name: string;
  readonly partition: number;
  readonly version: number;
}

export function partitionKey(ref: PartitionRef): string {
  return `${ref.name}/${ref.partition}@${ref.version}`;
}

/**
 * The host form of a partition: named columns over SharedArrayBuffers. `layout` names the meaning of the
 * columns, which is fixed beside the tasks that use it; `rows` is the number of rows (not of the child
 * values).
 */
export interface Partition {
  readonly layout: string;
  readonly rows: number;
  readonly columns: Readonly<Record<string, SharedColumn>>;
  /** Of a matrix of factors: a device with the calling thread's memory keeps its rows without padding. */
  readonly packed?: boolean;
  /**
   * Columns of a matrix of factors without its padding, where its rows have the padding of the device that
   * takes it.
   */
  readonly width?: number;
  /**
   * True where the memory of the columns serves another partition once this one is released: it is no garbage
   * then.
   */
  readonly reused?: boolean;
  /** Of pieces of its only column, which tasks may take one by one: the end of each, in elements. */
  readonly ends?: readonly number[];
  /**
   * Of a partition in a file of the spill folder, in place of columns: tasks of the CPU read it from there.
   */
  readonly spilled?: SpilledPartition;
  /** Of rows on their way between devices, in place of columns. */
  readonly inFiles?: InFiles;
}

/**
 * Memory of the host in files that lie in memory, which threads of the system fill and read beside the one
 * that asks: piece i is in file i mod their number, behind the file's earlier pieces.
 */
export interface FileMemory {
  /** Open descriptors, which all threads of the process share. */
  readonly files: readonly number[];
  readonly pieceBytes: number;
  /** Bytes that it has room for. */
  readonly bytes: number;
}

/** Rows in files in memory, as float32 or float16 numbers. */
export interface InFiles {
  readonly memory: FileMemory;
  readonly form: 'f32' | 'f16';
  readonly bytes: number;
}

/**
 * A row-major float32 matrix that lives in a device's own memory. `stride` >= `columns`, both in elements;
 * padding is 0.
 */
export interface MatrixShape {
  /**
   * Default: factors. Another layout is a vector of `rows` float32 numbers, column `values`, in memory that
   * host and device reach.
   */
  readonly layout?: string;
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
  /**
   * 'any': the first task that writes it writes all of it, padding too, before any task reads it. Default:
   * zeros.
   */
  readonly contents?: 'zeros' | 'any';
  /** In host memory, which has no padding: as that of Partition. */
  readonly packed?: boolean;
  /**
   * True for a matrix that goes on to another device, whose rows have this stride: a device that computes in
   * host memory allocates it outside of its kernels' memory.
   */
  readonly leaves?: boolean;
  /**
   * True where no task reads more of it than a copy of half the width: a device that keeps such copies keeps
   * that alone.
   */
  readonly halfOnly?: boolean;
}

/** Bytes held by the columns of a partition. */
export function partitionBytes(partition: Partition): number {
  let bytes = partition.inFiles?.bytes ?? 0;
  for (const column of Object.values(partition.columns)) bytes += column.byteLength;
  return bytes;
}

/** A piece of a partition's only column; one without pieces is a piece. */
export function pieceOf({ columns, ends }: Pick<Partition, 'columns' | 'ends'>, piece: number): SharedColumn {
  const [column] = Object.values(columns);
  return ends === undefined ? column : column.subarray(piece === 0 ? 0 : ends[piece - 1], ends[piece]);
}

/** A zeroed typed array over fresh shared memory. */
export function sharedArray<T extends SharedColumn>(
  type: { new (buffer: SharedArrayBuffer): T; readonly BYTES_PER_ELEMENT: number },
  length: number,
): T {
  return new type(new SharedArrayBuffer(length * type.BYTES_PER_ELEMENT));
}

/** Bytes from which the pages of an array are its own. */
const PAGED_BYTES = 1 << 20;

/**
 * The same over pages that go back to the system as soon as the array is collected, for data that comes and
 * goes piece by piece: of arrays of some megabytes the allocator of the process keeps the memory, where it is
 * in pieces. A buffer that may grow, even to its own size alone, has such pages.
 */
export function pagedArray<T extends SharedColumn>(
  type: {
    new (buffer: SharedArrayBuffer, byteOffset?: number, length?: number): T;
    readonly BYTES_PER_ELEMENT: number;
  },
  length: number,
): T {
  const bytes = length * type.BYTES_PER_ELEMENT;
  return bytes < PAGED_BYTES
    ? sharedArray(type, length)
    : new type(new SharedArrayBuffer(bytes, { maxByteLength: bytes }), 0, length);
}

let dataSets = 0;

/** A name for a data set that nothing else in this process has. */
export function dataSetName(base: string): string {
  dataSets++;
  return `${base}#${dataSets}`;
}
