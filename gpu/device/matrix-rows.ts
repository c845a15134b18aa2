import type { Gpu } from '../webgpu/gpu.ts';
import { STAGING_BYTES } from '../webgpu/staging.ts';
import { FreshMemory } from '../exchange/fresh-memory.ts';
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
  const memory = new FreshMemory(rows * columns);
  const target = memory.values;
  if (target.length === 0) return target;
  const ready = (at: number, bytes: number) => memory.ready((at / (4 * stride)) * columns, ((at + bytes) / (4 * stride)) * columns);
  const take = (piece: ArrayBuffer, at: number) => {
    const padded = new Float32Array(piece);
    const [first, count] = [at / (4 * stride), padded.length / stride];
    if (stride === columns) target.set(padded, first * columns);
    else for (let row = 0; row < count; row++) target.set(padded.subarray(row * stride, row * stride + columns), (first + row) * columns);
  };
  await gpu.downloadPieces(values, { offset: 0, bytes: 4 * rows * stride, unit: 4 * stride }, { ready, take }, submitted);
  return target;
}
