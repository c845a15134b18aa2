/** What a GPU holds of partitions: buffers and what is needed to use them. */

/** Features beyond the rank are 0, up to a multiple of the 16 columns of a tensor-core tile. */
export const STRIDE_STEP = 16;

export function strideOf(columns: number): number {
  return Math.ceil(columns / STRIDE_STEP) * STRIDE_STEP;
}

/** Layouts of operators/tasks.ts whose column `values` is one float32 buffer on a GPU. */
export const vectorLayouts: readonly string[] = ['bias', 'column-bounds'];

/** A row-major matrix: `values` float32[rows * stride], padding 0. */
export interface DeviceMatrix {
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
  readonly values: GPUBuffer;
  /**
   * The same in float16, where a kernel gathers it: (rows + 1) * stride halves, two in each u32, lower address in the lower
   * bits. The last row is 0: what lies behind a row's end gathers it.
   */
  half?: GPUBuffer;
}

/** A block of ratings (layout rating-block), its row pointers on both sides. */
export interface DeviceBlock {
  readonly rows: number;
  readonly ratings: number;
  /** Int32[rows + 1] on the host. */
  readonly offsets: Int32Array;
  /** Uint32[ratings] on the host. */
  readonly columns: Uint32Array;
  /** The same: i32[rows + 1]. */
  readonly rowPointers: GPUBuffer;
  /** u32[ratings] */
  readonly indices: GPUBuffer;
  /** f32[ratings] */
  readonly values: GPUBuffer;
  /** What a kernel's preparation keeps with the block: lists of its rows in the order in which they are solved. */
  readonly prepared: Map<string, unknown>;
}

/** Ratings in the order in which they are visited (layout rating-list). */
export interface DeviceList {
  readonly ratings: number;
  /** u32[ratings] */
  readonly rows: GPUBuffer;
  readonly columns: GPUBuffer;
  /** f32[ratings] */
  readonly values: GPUBuffer;
}

/** What a kernel's preparation keeps with a block goes with it: buffers, or lists and objects of them. */
export function destroyBuffers(value: unknown): void {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  if ('destroy' in value && typeof value.destroy === 'function') value.destroy();
  else for (const part of Object.values(value)) destroyBuffers(part);
}
