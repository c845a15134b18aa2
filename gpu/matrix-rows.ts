import { sharedArray } from '../engine/partition.ts';
import type { Gpu } from './gpu.ts';
import type { DeviceMatrix } from './resources.ts';
import { STAGING_BYTES } from './staging.ts';

/** Bytes of padded rows that are on their way at once. */
const SCRATCH_BYTES = 32 << 20;

/** Copies rows without padding to a matrix whose padding is 0. */
export async function uploadRows(gpu: Gpu, matrix: DeviceMatrix, source: Float32Array): Promise<void> {
  const { rows, columns, stride, values } = matrix;
  if (stride === columns) return gpu.upload(values, source);
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

/** The rows of a matrix without padding, in shared memory. */
export async function downloadRows(gpu: Gpu, matrix: DeviceMatrix): Promise<Float32Array> {
  const { rows, columns, stride, values } = matrix;
  const target = sharedArray(Float32Array, rows * columns);
  if (target.length === 0) return target;
  if (stride === columns) {
    await gpu.download(values, target);
    return target;
  }
  const step = rowsOf(matrix);
  const scratch = new Float32Array(Math.min(rows, step) * stride);
  for (let from = 0; from < rows; from += step) {
    const count = Math.min(step, rows - from);
    await gpu.download(values, scratch.subarray(0, count * stride), from * stride * 4);
    for (let row = 0; row < count; row++) target.set(scratch.subarray(row * stride, row * stride + columns), (from + row) * columns);
  }
  return target;
}

function rowsOf({ stride }: DeviceMatrix): number {
  return Math.max(1, Math.floor(SCRATCH_BYTES / (4 * stride)));
}
