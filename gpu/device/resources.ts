/** Partitions as they are stored on a GPU: buffers, and the data needed to use them. */
import type { FileMemory, Partition } from '../../engine/partition.ts';

/** Rows of a matrix are padded with zeros to a multiple of this number, the columns of a tensor-core tile. */
export const STRIDE_STEP = 16;

export function strideOf(columns: number): number {
  return Math.ceil(columns / STRIDE_STEP) * STRIDE_STEP;
}

/** Layouts of operators/tasks/tasks.ts whose column `values` is one float32 buffer on a GPU. */
export const vectorLayouts: readonly string[] = [
  'bias',
  'column-bounds',
  'column-order',
  'row-shifts',
  'row-totals',
];

/**
 * Layout of rows that are sent from one GPU to another: padded as in a matrix, in float32, in float16 as in
 * its half mirror, or in 8 bits (copies/to-half.ts). See Device.fetch.
 */
export const WIRE_ROWS = 'wire-rows';

/** The bytes of rows in this layout, in host memory or in memory files. */
export interface WireRows {
  readonly form: 'f32' | 'f16' | 'i8';
  readonly bytes: number;
  readonly source: Float32Array | Uint16Array | Uint8Array | FileMemory;
  /** See InFiles. */
  readonly arrived?: Int32Array | undefined;
}

export function wireRows({ columns: { values }, inFiles }: Partition): WireRows {
  if (inFiles !== undefined) {
    const { form, bytes, memory, arrived } = inFiles;
    return { form, bytes, source: memory, arrived };
  }
  return {
    form: values instanceof Uint8Array ? 'i8' : values instanceof Uint16Array ? 'f16' : 'f32',
    bytes: values.byteLength,
    source: values as Float32Array | Uint16Array | Uint8Array,
  };
}

/** Bytes of each number of such rows in float32 or float16. */
export function numberBytes({ form }: Pick<WireRows, 'form'>): number {
  return form === 'f16' ? 2 : 4;
}

/** Bytes of rows in 8 bits, with the largest |x| of each column. */
export function packedBytes(rows: number, stride: number): number {
  return rows * stride + 4 * stride;
}

/** A row-major matrix: `values` float32[rows * stride], padding 0. */
export interface DeviceMatrix {
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
  readonly values: GPUBuffer;
  /**
   * The half mirror, for kernels that read float16: (rows + 1) * stride halves. Two halves share a u32, the
   * one with the lower address in the lower bits. The extra last row is 0: kernels read it for positions
   * after the end of a row's ratings.
   */
  half?: GPUBuffer;
  /** True if only the half mirror is stored; `values` is then empty. */
  readonly halfOnly?: boolean;
}

/** A block of ratings (layout rating-block); row pointers and columns are also on the host. */
export interface DeviceBlock {
  readonly rows: number;
  readonly ratings: number;
  /** Row pointers on the host: Int32[rows + 1]. */
  readonly offsets: Int32Array;
  /** Column indices on the host: Uint32[ratings]; undefined once the host has dropped them. */
  readonly columns: Uint32Array | undefined;
  /** Row pointers on the device: i32[rows + 1]. */
  readonly rowPointers: GPUBuffer;
  /** Column indices on the device: u32[ratings]. */
  readonly indices: GPUBuffer;
  /** f32[ratings] */
  readonly values: GPUBuffer;
  /** If a kernel computes the values: resolves when it has finished. */
  readonly filled?: Promise<unknown>;
  /** Data that kernels prepare once and cache with the block, such as lists of its rows in solving order. */
  readonly prepared: Map<string, unknown>;
}

/** Ratings in the order in which SGD visits them (layout rating-list). */
export interface DeviceList {
  readonly ratings: number;
  /** u32[ratings] */
  readonly rows: GPUBuffer;
  readonly columns: GPUBuffer;
  /** f32[ratings] */
  readonly values: GPUBuffer;
}

/** Destroys buffers, including buffers inside lists and objects: the data that kernels cache with a block. */
export function destroyBuffers(value: unknown): void {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  if ('destroy' in value && typeof value.destroy === 'function') value.destroy();
  else for (const part of Object.values(value)) destroyBuffers(part);
}
