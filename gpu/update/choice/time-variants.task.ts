import { CancelledError, CapacityError, DeviceLostError } from '../../../engine/errors.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { addHalf } from '../../copies/to-half.ts';
import { destroyBuffers, type DeviceBlock, type DeviceMatrix, strideOf } from '../../device/resources.ts';
import type { GpuTaskHandler, TimeVariantsTask, VariantTime } from '../../handler.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { type UpdateInputs, updateRows } from '../update.task.ts';
import { variantNamed } from './choose.ts';
import { solverNamed, type UpdateSettings } from './variant.ts';

const LAMBDA = 0.05;
const MEAN = 3;

/** Number of timed runs of a variant; the result is their median. */
const RUNS = 7;

/** A variant that takes more than this number of times the fastest variant's time is not run again. */
const FAR_SLOWER = 1.5;

/** Milliseconds of untimed work before the first measurement, since an idle GPU lowers its clock. */
const WARM_UP = 300;

/** Number of random elements that are generated; they are repeated to fill larger factor matrices. */
const RANDOM_ELEMENTS = 1 << 20;

/**
 * Times variants one after the other, on the same rows and with random factors. Time is measured by the GPU's
 * clock if it has one, else by the host's; compiling is not counted. A variant that fails is listed with its
 * error, but a lost device or too little memory ends the task. The first variant is always measured.
 */
export const timeVariants: GpuTaskHandler<'time-variants'> = async (scope) => {
  const { gpu, params, cancelled } = scope;
  const begin = performance.now();
  const whole = scope.partition('block').columns as unknown as HostRatings;
  const sample = sampleRows(whole, params.sample);
  const block = sample === whole ? scope.block('block') : await blockOf(gpu, sample);
  const { rows, ratings } = block;
  const settings = {
    ...(params.implicit && { implicit: { alpha: 1, base: 1 } }),
    from: 0,
    to: rows,
    rank: params.rank,
    lambda: params.implicit ? 0 : LAMBDA,
    mean: params.biases ? MEAN : 0,
    solver: solverNamed(params),
    scale: params.ratingScale,
  };
  const variants = params.variants.map((name) => variantNamed(name, gpu.info, params));
  const inputs = await randomInputs(gpu, block, params);
  const times: VariantTime[] = [];
  let best = params.best ?? Number.POSITIVE_INFINITY;
  try {
    for (const variant of variants) {
      if (cancelled()) throw new CancelledError({ phase: 'tune' });
      if (times.length > 0 && performance.now() - begin > 1000 * params.seconds) break;
      const warmUp = times.length === 0 && !gpu.info.software ? WARM_UP : 0;
      const time = await timeVariant(gpu, inputs, { ...settings, variant }, best, warmUp);
      best = Math.min(best, time.milliseconds ?? best);
      times.push(time);
    }
    return { rows, values: { times, rows, ratings, clock: gpu.info.timestamps ? 'gpu' : 'host' } };
  } finally {
    const { block: _block, ...made } = inputs;
    destroyBuffers(made);
    if (sample !== whole) destroyBuffers([block.rowPointers, block.indices, block.values]);
  }
};

async function blockOf(gpu: Gpu, { offsets, indices, values }: HostRatings): Promise<DeviceBlock> {
  return {
    rows: offsets.length - 1,
    ratings: indices.length,
    offsets,
    columns: indices,
    rowPointers: await gpu.bufferOf(offsets, 'sample offsets'),
    indices: await gpu.bufferOf(indices, 'sample indices'),
    values: await gpu.bufferOf(values, 'sample values'),
    prepared: new Map(),
  };
}

async function timeVariant(
  gpu: Gpu,
  made: UpdateInputs,
  settings: UpdateSettings,
  best: number,
  warmUp: number,
): Promise<VariantTime> {
  const variant = settings.variant.name;
  // Each variant divides the rows among kernels in its own way. Its lists are kept in a map of its own, so
  // that they are freed after it.
  const inputs = { ...made, block: { ...made.block, prepared: new Map<string, unknown>() } };
  const milliseconds: number[] = [];
  const run = async () => {
    const start = performance.now();
    const { times } = await updateRows(gpu, inputs, settings, { timed: true });
    const measured = Object.values(times);
    return measured.length > 0 ? measured.reduce((sum, time) => sum + time) : performance.now() - start;
  };
  try {
    await run();
    for (const start = performance.now(); performance.now() - start < warmUp;) await run();
    while (milliseconds.length < RUNS) {
      milliseconds.push(await run());
      if (median(milliseconds) > FAR_SLOWER * best) break;
    }
    return { variant, milliseconds: median(milliseconds), runs: milliseconds.length };
  } catch (error) {
    if (error instanceof DeviceLostError || error instanceof CapacityError) throw error;
    const problem = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return { variant, milliseconds: null, runs: 0, problem };
  } finally {
    for (const lists of inputs.block.prepared.values()) destroyBuffers(lists);
  }
}

async function randomInputs(
  gpu: Gpu,
  block: DeviceBlock,
  { rank, columns, biases, implicit, prior }: TimeVariantsTask['params'],
): Promise<UpdateInputs> {
  const bias = (rows: number) => gpu.buffer(4 * Math.max(1, rows), 'tuning biases');
  const ones = new Float32Array(Math.max(1, block.rows)).fill(1);
  const previous = await matrix(gpu, block.rows, rank);
  return {
    block,
    fixed: await matrix(gpu, columns, rank),
    previous,
    factors: await matrix(gpu, block.rows, rank),
    ...(biases && { fixedBias: await bias(columns), bias: await bias(block.rows) }),
    ...(implicit && {
      gram: await gpu.buffer(4 * strideOf(rank) ** 2, 'tuning Gram matrix'),
      shifts: await gpu.bufferOf(ones, 'tuning shifts'),
    }),
    ...(prior && { prior: previous.values, ...(biases && { priorBias: await bias(block.rows) }) }),
  };
}

/** A random factor matrix, with its float16 copy. Rows have a length of about 0.7. */
async function matrix(gpu: Gpu, rows: number, rank: number): Promise<DeviceMatrix> {
  const stride = strideOf(rank);
  const made: DeviceMatrix = {
    rows,
    columns: rank,
    stride,
    values: await gpu.buffer(4 * rows * stride, 'tuning factors'),
    half: await gpu.buffer(2 * (rows + 1) * stride, 'tuning half mirror'),
  };
  const some = Math.max(1, Math.min(rows, Math.floor(RANDOM_ELEMENTS / stride)));
  const random = new CounterRandom(7);
  const values = new Float32Array(some * stride);
  for (let row = 0; row < some; row++) {
    for (let k = 0; k < rank; k++)
      values[row * stride + k] = (2 * random.uniform(row * stride + k) - 0.6) / Math.sqrt(rank);
  }
  for (let row = 0; row < rows; row += some)
    await gpu.upload(made.values, values.subarray(0, Math.min(some, rows - row) * stride), 4 * row * stride);
  const pass = gpu.pass('tuning half mirror');
  await addHalf(gpu, pass, made);
  await pass.submit();
  return made;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** A CSR block of ratings in host memory: the columns of layout rating-block. */
export interface HostRatings {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/**
 * Takes a sample of a block for timing: whole rows, evenly spaced and in order, with about `limit` ratings in
 * total. Returns the block itself if it has at most 1.5 times that number. Since the rows have their full
 * lengths, a variant takes the same time for a rating as with the block, except for effects of the number of
 * rows.
 */
export function sampleRows(block: HostRatings, limit: number): HostRatings {
  const { offsets, indices, values } = block;
  const rows = offsets.length - 1;
  const ratings = offsets[rows];
  if (ratings <= 1.5 * limit) return block;
  const count = Math.max(1, Math.round((rows * limit) / ratings));
  const taken = Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * rows) / count));
  const sampled = new Int32Array(count + 1);
  taken.forEach((row, i) => (sampled[i + 1] = sampled[i] + offsets[row + 1] - offsets[row]));
  const result = {
    offsets: sampled,
    indices: new Uint32Array(sampled[count]),
    values: new Float32Array(sampled[count]),
  };
  taken.forEach((row, i) => {
    result.indices.set(indices.subarray(offsets[row], offsets[row + 1]), sampled[i]);
    result.values.set(values.subarray(offsets[row], offsets[row + 1]), sampled[i]);
  });
  return result;
}
