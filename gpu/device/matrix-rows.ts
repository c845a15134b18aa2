import { sharedArray } from '../../engine/partition.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { STAGING_BYTES } from '../webgpu/staging.ts';
import type { DeviceMatrix } from './resources.ts';

/** Rows whose copy takes tens of milliseconds: the first iteration follows that of a start. */
const LONG_BYTES = 1 << 28;

/** Copies rows to a matrix whose padding is 0: without padding, or as they lie there. */
export async function uploadRows(gpu: Gpu, matrix: DeviceMatrix, source: Float32Array): Promise<void> {
  const { rows, columns, stride, values } = matrix;
  if (source.length === rows * stride) return source.byteLength < LONG_BYTES ? gpu.upload(values, source) : gpu.keepAwake(gpu.upload(values, source));
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

/** The rows of a matrix without padding, in shared memory. Calls `submitted` when all copies are submitted: later work may then write the matrix. */
export async function downloadRows(gpu: Gpu, matrix: DeviceMatrix, submitted?: () => void): Promise<Float32Array> {
  const { rows, columns, stride, values } = matrix;
  const target = sharedArray(Float32Array, rows * columns);
  if (target.length === 0) return target;
  if (stride === columns) {
    await gpu.download(values, target, 0, submitted);
    return target;
  }
  await gpu.downloadPieces(values, { offset: 0, bytes: 4 * rows * stride, unit: 4 * stride }, (piece, at) => {
    const padded = new Float32Array(piece);
    const first = at / (4 * stride);
    for (let row = 0; row * stride < padded.length; row++) target.set(padded.subarray(row * stride, row * stride + columns), (first + row) * columns);
  }, submitted);
  return target;
}
