import { CounterRandom } from '../../engine/random.ts';
import { type DeviceMatrix, strideOf } from '../../gpu/device/resources.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';

/** Factors of one rank: x and θ, memory for their next versions, and the initial x. */
export interface Factors {
  readonly rank: number;
  readonly start: GPUBuffer;
  x: DeviceMatrix;
  nextX: DeviceMatrix;
  theta: DeviceMatrix;
  nextTheta: DeviceMatrix;
  readonly beta: GPUBuffer;
  readonly gamma: GPUBuffer;
  readonly gram: GPUBuffer;
}

export async function makeFactors(gpu: Gpu, rank: number, users: number, items: number): Promise<Factors> {
  const stride = strideOf(rank);
  const matrix = async (rows: number): Promise<DeviceMatrix> => ({
    rows,
    columns: rank,
    stride,
    values: await gpu.buffer(rows * stride * 4, 'factors'),
    half: await gpu.buffer((rows + 1) * stride * 2, 'half'),
  });
  return {
    rank,
    start: await gpu.bufferOf(randomRows(users, rank), 'start'),
    beta: await gpu.buffer(4 * users, 'user biases'),
    gamma: await gpu.buffer(4 * items, 'item biases'),
    gram: await gpu.buffer(4 * stride * stride, 'Gram matrix'),
    x: await matrix(users),
    nextX: await matrix(users),
    theta: await matrix(items),
    nextTheta: await matrix(items),
  };
}

export function freeFactors({ start, x, nextX, theta, nextTheta, beta, gamma, gram }: Factors): void {
  for (const buffer of [start, beta, gamma, gram]) buffer.destroy();
  for (const { values, half } of [x, nextX, theta, nextTheta]) {
    values.destroy();
    half?.destroy();
  }
}

function randomRows(rows: number, columns: number): Float32Array {
  const stride = strideOf(columns);
  const random = new CounterRandom(1);
  const scale = 3.46 / Math.sqrt(columns);
  const values = new Float32Array(rows * stride);
  for (let row = 0; row < rows; row++) {
    for (let k = row * stride; k < row * stride + columns; k++) values[k] = (random.uniform(k) - 0.5) * scale;
  }
  return values;
}
