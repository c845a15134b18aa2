/**
 * ALS on a GPU without the engine: ratings and factors stay in place, and half-iterations run one after the
 * other.
 */
import { join } from 'node:path';
import { Session } from '../../api/session.ts';
import { CounterRandom } from '../../engine/random.ts';
import { andThen, executePlan } from '../../engine/stream/logical-plan.ts';
import { addHalf } from '../../gpu/copies/to-half.ts';
import { type DeviceBlock, type DeviceMatrix, strideOf } from '../../gpu/device/resources.ts';
import type { GpuScopeOf } from '../../gpu/handler.ts';
import { addGramMatrix } from '../../gpu/implicit/gram.task.ts';
import { int8Scale } from '../../gpu/int8/int8-plan.ts';
import { squaredError } from '../../gpu/loss/squared-error.task.ts';
import type { UpdateVariant } from '../../gpu/update/choice/variant.ts';
import { everyVariant, updateVariants } from '../../gpu/update/choice/variants.ts';
import { updateRows } from '../../gpu/update/update.task.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { openGpu } from '../../gpu/webgpu/open-gpu.ts';
import type { KernelTimes } from '../../gpu/webgpu/pass.ts';
import { collectKnownPairs } from '../../operators/ratings/ids/known-pairs.ts';
import { oneBlock, type RatingBlock } from '../../operators/ratings/ratings.ts';
import { readRatings } from '../../operators/ratings/reading/read-ratings.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import { sortByUser, sortRatings } from '../../operators/ratings/sort-ratings.ts';

/** One way to train. */
export interface TrainingSetting {
  readonly rank: number;
  /** CG steps; 0 for Cholesky. */
  readonly steps: number;
  readonly lambda?: number;
  readonly variant: UpdateVariant;
  readonly form?: ProblemForm;
}

/** Kinds of problems besides plain explicit ones. */
export interface ProblemForm {
  readonly biases?: boolean;
  /** α for implicit data, with λ on the diagonal of each row. */
  readonly alpha?: number;
  readonly nonnegative?: boolean;
}

/** μ for problems with biases; approximately the data's mean. */
const MEAN = 3.6;

/** Ratings are stars. */
const LARGEST_RATING = 5;

export type Side = 'items' | 'users';

/**
 * Milliseconds of one iteration: of each side until the host knows that it has ended, and of their kernels on
 * the GPU if requested.
 */
export interface IterationTimes {
  readonly wall: number;
  readonly sides: Readonly<Record<Side, number>>;
  readonly kernels: Readonly<Record<Side, KernelTimes>>;
  /** "row 3 of items": rows whose factors are not finite. */
  readonly bad: readonly string[];
}

export class HalfIterations {
  readonly gpu: Gpu;
  /** Lines that describe the GPU and the data. */
  readonly description: readonly string[];
  readonly users: DeviceBlock;
  readonly items: DeviceBlock;
  readonly #test: DeviceBlock;
  #factors: Factors | undefined;
  readonly #shiftsOf = new Map<DeviceBlock, GPUBuffer>();

  private constructor(
    gpu: Gpu,
    description: readonly string[],
    [users, items, test]: readonly DeviceBlock[],
  ) {
    this.gpu = gpu;
    this.description = description;
    this.users = users;
    this.items = items;
    this.#test = test;
  }

  /** Opens the GPU and uploads a data set. */
  static async open(folder: string): Promise<HalfIterations> {
    const gpu = await openGpu();
    const { info } = gpu;
    const { byUser, byItem, test, seconds } = await loadBlocks(folder);
    const start = performance.now();
    const blocks: DeviceBlock[] = [];
    for (const block of [byUser, byItem, test]) blocks.push(await deviceBlock(gpu, block));
    await gpu.pass('wait').submit();
    const uploaded = (performance.now() - start) / 1000;
    const empty = await roundTrip(gpu);
    const description = [
      `${info.name}: ${info.features.join(', ') || 'no extra features'}; ${info.limits.workgroupBytes} B of workgroup memory, ${info.limits.storageBuffers} storage buffers`,
      `${byUser.rows} users, ${byItem.rows} items, ${byUser.ratings} ratings, ${test.ratings} test pairs; loaded in ${seconds.toFixed(2)} s, uploaded in ${uploaded.toFixed(2)} s; an empty pass takes ${empty.toFixed(3)} ms`,
    ];
    return new HalfIterations(gpu, description, blocks);
  }

  /** The variants that this GPU supports, best first by rule; `every` also adds modifications of them. */
  variants(
    rank: number,
    steps: number,
    { biases = false, alpha, nonnegative }: ProblemForm = {},
    every = false,
  ): UpdateVariant[] {
    return (every ? everyVariant : updateVariants)(this.gpu.info, {
      rank,
      solver: steps > 0 ? 'cg' : nonnegative ? 'nonnegative' : 'cholesky',
      biases,
      implicit: alpha !== undefined,
    });
  }

  /** Resets the factors of a rank to the initial ones; frees the factors of another rank. */
  async restart(rank: number): Promise<void> {
    if (this.#factors?.rank !== rank) await this.#make(rank);
    const { x, theta, start, beta } = this.#require();
    const encoder = this.gpu.device.createCommandEncoder({ label: 'start' });
    encoder.copyBufferToBuffer(start, 0, x.values, 0, x.rows * x.stride * 4);
    encoder.clearBuffer(theta.values);
    encoder.clearBuffer(beta);
    this.gpu.device.queue.submit([encoder.finish()]);
    const pass = this.gpu.pass('start');
    await addHalf(this.gpu, pass, x);
    await pass.submit();
  }

  /** Solves θ, then x. */
  async iterate(setting: TrainingSetting, timed = false): Promise<IterationTimes> {
    const factors = this.#require();
    const begin = performance.now();
    const one = await this.#solve('items', setting, timed);
    [factors.theta, factors.nextTheta] = [factors.nextTheta, factors.theta];
    const middle = performance.now();
    const two = await this.#solve('users', setting, timed);
    [factors.x, factors.nextX] = [factors.nextX, factors.x];
    const end = performance.now();
    const rows = { items: one.badRow, users: two.badRow };
    const bad = Object.entries(rows).flatMap(([side, row]) => (row < 0 ? [] : [`row ${row} of ${side}`]));
    return {
      wall: end - begin,
      sides: { items: middle - begin, users: end - middle },
      kernels: { items: one.times, users: two.times },
      bad,
    };
  }

  async #solve(
    side: Side,
    { rank, steps, lambda = 0.05, variant, form = {} }: TrainingSetting,
    timed: boolean,
  ): Promise<{ readonly badRow: number; readonly times: KernelTimes }> {
    const { gpu } = this;
    const { biases = false, alpha, nonnegative } = form;
    const { x, nextX, theta, nextTheta, beta, gamma, gram } = this.#require();
    const [block, fixed, previous, factors, bias, fixedBias] =
      side === 'items'
        ? [this.items, x, theta, nextTheta, gamma, beta]
        : [this.users, theta, x, nextX, beta, gamma];
    const settings = {
      variant,
      from: 0,
      to: block.rows,
      rank,
      lambda: alpha === undefined ? lambda : 0,
      mean: biases ? MEAN : 0,
      solver: steps > 0 ? { steps } : nonnegative ? ('nonnegative' as const) : ('cholesky' as const),
      scale: variant.precision === 'int8' ? int8Scale(LARGEST_RATING) : 1,
    };
    const inputs = { block, fixed, previous, factors, ...(biases ? { bias, fixedBias } : {}) };
    if (alpha === undefined) return updateRows(gpu, inputs, settings, { timed });
    const pass = gpu.pass('gram');
    await addGramMatrix(gpu, pass, fixed, gram, rank, 1);
    const { times } = await pass.submit({ timed });
    const shifts = await this.#shifts(block, lambda);
    const solved = await updateRows(
      gpu,
      { ...inputs, gram, shifts },
      { ...settings, implicit: { alpha, base: 1 } },
      { timed },
    );
    return {
      badRow: solved.badRow,
      times: {
        ...Object.fromEntries(Object.entries(times).map(([kernel, ms]) => [`gram's ${kernel}`, ms])),
        ...solved.times,
      },
    };
  }

  async #shifts(block: DeviceBlock, lambda: number): Promise<GPUBuffer> {
    const shifts = new Float32Array(block.rows).fill(lambda);
    const known = this.#shiftsOf.get(block) ?? (await this.gpu.bufferOf(shifts, 'shifts'));
    this.#shiftsOf.set(block, known);
    return known;
  }

  /** Test RMSE of the current factors. */
  async rmse(): Promise<number> {
    const { x, theta } = this.#require();
    const unused = (name: string) => {
      throw new Error(`the bench gives no ${name}`);
    };
    const scope: GpuScopeOf<'squared-error'> = {
      gpu: this.gpu,
      params: { from: 0, to: this.#test.rows, rank: x.columns },
      // A float16 copy of θ is out of date after iterations in float32.
      matrix: (name) => (name === 'rowFactors' ? x : { ...theta, half: undefined }),
      block: () => this.#test,
      has: () => false,
      hasMatrix: () => true,
      submitted: () => undefined,
      list: unused,
      matrixWithHalf: unused,
      matrixOrHalf: unused,
      wire: unused,
      vector: unused,
      partition: unused,
      cancelled: () => false,
    };
    const { squared, count } = (await squaredError(scope)).values;
    return Math.sqrt(squared / count);
  }

  /** The current x and θ; valid until the next iteration. */
  factors(): { readonly x: DeviceMatrix; readonly theta: DeviceMatrix } {
    return this.#require();
  }

  #require(): Factors {
    if (this.#factors === undefined) throw new Error('restart() makes the factors');
    return this.#factors;
  }

  async #make(rank: number): Promise<void> {
    if (this.#factors !== undefined) freeFactors(this.#factors);
    this.#factors = undefined;
    this.#factors = await makeFactors(this.gpu, rank, this.users.rows, this.items.rows);
  }
}

async function deviceBlock(
  gpu: Gpu,
  { rows, ratings, offsets, indices, values }: RatingBlock,
): Promise<DeviceBlock> {
  return {
    rows,
    ratings,
    offsets,
    columns: indices,
    rowPointers: await gpu.bufferOf(offsets, 'offsets'),
    indices: await gpu.bufferOf(indices, 'indices'),
    values: await gpu.bufferOf(values, 'values'),
    prepared: new Map(),
  };
}

/** Milliseconds from submitting nothing until the host has received four bytes. */
async function roundTrip(gpu: Gpu): Promise<number> {
  const status = await gpu.scratch('status', 16);
  const times: number[] = [];
  for (let i = 0; i < 50; i++) {
    const begin = performance.now();
    await gpu.pass('empty').submit({ read: { buffer: status, bytes: 4 } });
    times.push(performance.now() - begin);
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}

/**
 * Loads a data set from `factorflow generate` as training does: blocks by user and by item, and the test
 * pairs.
 */
async function loadBlocks(folder: string) {
  const start = performance.now();
  await using session = await Session.create({ device: 'cpu' });
  const ctx = session.context();
  const select = new SelectRatings({ user: 'user', item: 'item', rating: 'rating' });
  const indexed = await readRatings(
    andThen(session.read.parquet(join(folder, 'train')).plan, select),
    {},
    ctx,
  );
  const { users, items } = indexed;
  const { byUser, byItem } = await sortRatings(indexed, { duplicates: 'keep' }, ctx);
  const seconds = (performance.now() - start) / 1000;
  const known = await collectKnownPairs(
    await executePlan(andThen(session.read.parquet(join(folder, 'test')).plan, select), ctx),
    users,
    items,
    ctx,
  );
  const test = await sortByUser(known.indexed, 'keep', ctx);
  return { byUser: oneBlock(byUser), byItem: oneBlock(byItem), test, seconds };
}

/** Factors of one rank: x and θ, memory for their next versions, and the initial x. */
interface Factors {
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

async function makeFactors(gpu: Gpu, rank: number, users: number, items: number): Promise<Factors> {
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

function freeFactors({ start, x, nextX, theta, nextTheta, beta, gamma, gram }: Factors): void {
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
