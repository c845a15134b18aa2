/**
 * Times the update kernels on a GPU, variant by variant: whole iterations of ALS without evaluation, on data that stays in
 * place, with the test RMSE after them.
 *
 *     node bench/gpu/update.ts FOLDER '[{"rank":100,"variant":"tensor-fused","change":{"partRatings":4096}}]' [iterations = 5]
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CounterRandom } from '../../engine/random.ts';
import { Gpu } from '../../gpu/gpu.ts';
import { type DeviceBlock, type DeviceMatrix, strideOf } from '../../gpu/resources.ts';
import { updateRows } from '../../gpu/update/half-iteration.ts';
import { updateVariants } from '../../gpu/update/variants.ts';
import type { UpdateVariant } from '../../gpu/update/variant.ts';
import type { RatingBlock } from '../../operators/rating-block.ts';
import { loadBlocks } from './load-blocks.ts';

interface Setting {
  readonly rank: number;
  /** Of CG; 0 for Cholesky. */
  readonly steps?: number;
  readonly lambda?: number;
  readonly iterations?: number;
  /** Name; without it the first by rule. */
  readonly variant?: string;
  /** What differs from it. */
  readonly change?: Partial<UpdateVariant>;
}

const [folder, given, count = '5'] = process.argv.slice(2);
const settings = JSON.parse(given) as Setting[];
const gpu = await Gpu.open();
console.log(`${gpu.info.name}: ${gpu.info.features.join(', ')}; ${gpu.info.limits.workgroupBytes} B of workgroup memory, ${gpu.info.limits.storageBuffers} storage buffers`);
const blocks = await loadBlocks(folder);
const { byUser, byItem, test } = blocks;
console.log(`${byUser.rows} users, ${byItem.rows} items, ${byUser.ratings} ratings, ${test.ratings} test pairs; loaded in ${blocks.seconds.toFixed(2)} s`);
const start = performance.now();
const users = await deviceBlock(byUser);
const items = await deviceBlock(byItem);
await gpu.pass('wait').submit();
console.log(`uploaded in ${((performance.now() - start) / 1000).toFixed(2)} s`);

console.log(`an empty pass takes ${(await roundTrip()).toFixed(3)} ms`);
for (const setting of settings) {
  try {
    await bench(setting);
  } catch (error) {
    console.log(`${JSON.stringify(setting)}: ${error instanceof Error ? error.message.slice(0, 600) : String(error)}`);
  }
}
process.exit(0);

async function bench({ rank, steps = 6, lambda = 0.05, iterations = Number(count), variant: name, change }: Setting): Promise<void> {
  const variants = updateVariants(gpu.info, { rank, cgSteps: steps, solver: steps === 0 ? 'cholesky' : 'cg', biases: false });
  const found = name === undefined ? variants[0] : variants.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there are ${variants.map((one) => one.name).join(', ')}`);
  const variant: UpdateVariant = { ...found, ...change };
  const matrices: DeviceMatrix[] = [];
  const matrix = async (rows: number) => {
    const made = { rows, columns: rank, stride: strideOf(rank), values: await gpu.buffer(rows * strideOf(rank) * 4, 'factors'), half: await gpu.buffer((rows + 1) * strideOf(rank) * 2, 'half') };
    matrices.push(made);
    return made;
  };
  let [x, nextX, theta, nextTheta] = [await matrix(byUser.rows), await matrix(byUser.rows), await matrix(byItem.rows), await matrix(byItem.rows)];
  await randomRows(x);
  const settings = { variant, from: 0, rank, lambda, mean: 0, solver: steps === 0 ? ('cholesky' as const) : { steps }, scale: 1 };
  const kernels: Record<string, number[]> = {};
  const iterate = async (timed: boolean) => {
    const begin = performance.now();
    const one = await updateRows(gpu, { block: items, fixed: x, previous: theta, factors: nextTheta }, { ...settings, to: items.rows }, timed);
    [theta, nextTheta] = [nextTheta, theta];
    const two = await updateRows(gpu, { block: users, fixed: theta, previous: x, factors: nextX }, { ...settings, to: users.rows }, timed);
    [x, nextX] = [nextX, x];
    const wall = performance.now() - begin;
    for (const [side, { badRow, times }] of [['items', one], ['users', two]] as const) {
      if (badRow >= 0) console.log(`  bad row ${badRow} of ${side}`);
      for (const [name, ms] of Object.entries(times)) (kernels[`${side} ${name}`] ??= []).push(ms);
    }
    return wall;
  };
  const first = await iterate(false);
  for (let iteration = 1; iteration < iterations; iteration++) await iterate(false);
  const rmse = await testRmse(x, theta);
  // An idle card clocks low: some hundred milliseconds of work first.
  for (const warm = performance.now(); performance.now() - warm < 400; ) await iterate(false);
  const later: number[] = [];
  for (let iteration = 0; iteration < 9; iteration++) later.push(await iterate(false));
  for (let iteration = 0; iteration < 5; iteration++) await iterate(true);
  later.sort((a, b) => a - b);
  const detail = Object.entries(kernels).map(([name, ms]) => `${name} ${median(ms).toFixed(2)}`).join(', ');
  console.log(`rank ${rank} ${steps === 0 ? 'cholesky' : `cg ${steps}`} ${variant.name} ${JSON.stringify(change ?? {})}: median ${median(later).toFixed(2)} ms (${later[0].toFixed(2)}-${later[later.length - 1].toFixed(2)}), first ${first.toFixed(0)} | ${detail} | test RMSE ${rmse.toFixed(4)} after ${iterations}`);
  for (const { values, half } of matrices) {
    values.destroy();
    half?.destroy();
  }
  await sleep(0);
}

async function roundTrip(): Promise<number> {
  const status = await gpu.scratch('status', 16);
  const times: number[] = [];
  for (let i = 0; i < 50; i++) {
    const begin = performance.now();
    await gpu.pass('empty').submit({ read: { buffer: status, bytes: 4 } });
    times.push(performance.now() - begin);
  }
  return median(times);
}

async function deviceBlock({ rows, ratings, offsets, indices, values }: RatingBlock): Promise<DeviceBlock> {
  return { rows, ratings, offsets, columns: indices, rowPointers: await gpu.bufferOf(offsets, 'offsets'), indices: await gpu.bufferOf(indices, 'indices'), values: await gpu.bufferOf(values, 'values'), prepared: new Map() };
}

async function randomRows(matrix: DeviceMatrix): Promise<void> {
  const random = new CounterRandom(1);
  const { rows, columns, stride } = matrix;
  const values = new Float32Array(rows * stride);
  const halves = new Float16Array((rows + 1) * stride);
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < columns; k++) values[row * stride + k] = halves[row * stride + k] = (random.uniform(row * stride + k) - 0.5) * (3.46 / Math.sqrt(columns));
  }
  await gpu.upload(matrix.values, values);
  await gpu.upload(matrix.half as GPUBuffer, halves);
}

async function testRmse(x: DeviceMatrix, theta: DeviceMatrix): Promise<number> {
  const stride = x.stride;
  const left = new Float32Array(x.rows * stride);
  const right = new Float32Array(theta.rows * stride);
  await gpu.download(x.values, left);
  await gpu.download(theta.values, right);
  let sum = 0;
  for (let row = 0; row < test.rows; row++) {
    for (let k = test.offsets[row]; k < test.offsets[row + 1]; k++) {
      let prediction = 0;
      for (let i = 0; i < x.columns; i++) prediction += left[row * stride + i] * right[test.indices[k] * stride + i];
      sum += (test.values[k] - prediction) ** 2;
    }
  }
  return Math.sqrt(sum / test.ratings);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}
