import type { DeviceMatrix, DeviceBlock } from '../device/resources.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import { type PieceTaker, READBACK_BYTES, STAGING_BYTES } from '../webgpu/staging.ts';

/**
 * Copies a matrix without its padding. In the matrix, rows of `columns` values start `stride` values apart;
 * in the result there are no gaps. Writes `count` values of the result, from its value `first` on.
 */
export const unpaddedRowsKernel = kernelOf()({
  name: 'unpadded-rows',
  reads: { padded: 'array<u32>' },
  writes: { rows: 'array<u32>' },
  uniforms: { first: 'u32', count: 'u32', columns: 'u32', stride: 'u32' },
  values: () => ({ THREADS: 256 }),
});

/**
 * During uploads of at least this size, which take tens of milliseconds, the GPU gets dummy work that keeps
 * its clock high. An example is the upload of the initial factors.
 */
const LONG_BYTES = 1 << 28;

/**
 * Copies rows from the host to a matrix, whose padding is already 0. The source either has no padding or has
 * the matrix's own layout.
 */
export async function uploadRows(gpu: Gpu, matrix: DeviceMatrix, source: Float32Array): Promise<void> {
  const { rows, columns, stride, values } = matrix;
  if (source.length === rows * stride)
    return source.byteLength < LONG_BYTES
      ? gpu.upload(values, source)
      : gpu.keepAwake(gpu.upload(values, source));
  const step = Math.floor(STAGING_BYTES / (4 * stride));
  for (let from = 0; from < rows; from += step) {
    const count = Math.min(step, rows - from);
    await gpu.uploadFilled(values, 4 * from * stride, 4 * count * stride, (staged) => {
      const padded = new Float32Array(staged, 0, count * stride);
      for (let row = 0; row < count; row++) {
        padded.set(source.subarray((from + row) * columns, (from + row + 1) * columns), row * stride);
        padded.fill(0, row * stride + columns, (row + 1) * stride);
      }
    });
  }
}

/**
 * Copies the rows of a matrix to new shared memory. The GPU removes the padding. `submitted` is called once
 * all copies are submitted; tasks submitted after that may overwrite the matrix.
 */
export async function downloadRows(
  gpu: Gpu,
  { rows, columns, stride, values }: DeviceMatrix,
  submitted?: () => void,
): Promise<Float32Array> {
  const memory = gpu.host.awaitedValues(rows * columns);
  const target = memory.values;
  const bytes = target.byteLength;
  if (bytes === 0) return target;
  const taker: PieceTaker = {
    ready: (at, length) => memory.ready(at / 4, (at + length) / 4),
    take: (piece, at) => target.set(new Float32Array(piece), at / 4),
  };
  if (stride === columns) {
    await gpu.downloadPieces(values, { offset: 0, bytes }, taker, submitted);
    return target;
  }
  const kernel = await gpu.compile(unpaddedRowsKernel, {});
  const piece = await gpu.scratch('unpadded rows', Math.min(bytes, READBACK_BYTES), { passage: true });
  const passes: Promise<unknown>[] = [];
  const fill = (at: number, length: number) => {
    const count = length / 4;
    const pass = gpu
      .pass('unpadded-rows')
      .dispatch(
        kernel,
        { padded: values, rows: piece },
        { first: at / 4, count, columns, stride },
        { threads: count },
      )
      .submit();
    pass.catch(() => undefined);
    passes.push(pass);
  };
  await gpu.downloadPieces(piece, { offset: 0, bytes, fill }, taker, submitted);
  await Promise.all(passes);
  return target;
}

/**
 * Finds the values of a block of ratings in its transpose, which is already on the GPU. So of the two blocks
 * that a training needs (ratings by user and by item), the second is uploaded without values, which saves a
 * third of its uploads. `count`: ratings of the block; `rows`: its rows.
 */
export const transposedValuesKernel = kernelOf()({
  name: 'transposed-values',
  reads: {
    row_pointers: 'array<u32>',
    indices: 'array<u32>',
    other_pointers: 'array<u32>',
    other_indices: 'array<u32>',
    other_values: 'array<f32>',
  },
  writes: { values: 'array<f32>' },
  uniforms: { count: 'u32', rows: 'u32' },
  values: () => ({ THREADS: 256 }),
});

/**
 * Creates the buffer for the values of a block of ratings, and fills it from `other`, the block's transpose.
 * Returns without waiting for the kernel: `filled` resolves at its end, and work that is submitted later sees
 * the values.
 */
export async function transposedValues(
  gpu: Gpu,
  { rows, ratings, rowPointers, indices }: Pick<DeviceBlock, 'rows' | 'ratings' | 'rowPointers' | 'indices'>,
  other: DeviceBlock,
  label: string,
): Promise<{ readonly values: GPUBuffer; readonly filled: Promise<unknown> }> {
  const values = await gpu.buffer(4 * ratings, label);
  const bindings = {
    row_pointers: rowPointers,
    indices,
    other_pointers: other.rowPointers,
    other_indices: other.indices,
    other_values: other.values,
    values,
  };
  const filled = gpu
    .pass('transposed-values')
    .dispatch(
      await gpu.compile(transposedValuesKernel, {}),
      bindings,
      { count: ratings, rows },
      { threads: ratings },
    )
    .submit();
  // The task `upload` awaits `filled` and reports an error.
  filled.catch(() => undefined);
  return { values, filled };
}
