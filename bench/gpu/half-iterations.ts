/** ALS on a GPU without the engine around it: ratings and factors stay in place, half-iterations run one after the other. */
import { CounterRandom } from '../../engine/random.ts';
import { Gpu } from '../../gpu/webgpu/gpu.ts';
import type { GpuScopeOf } from '../../gpu/handler.ts';
import type { KernelTimes } from '../../gpu/webgpu/pass.ts';
import { type DeviceBlock, type DeviceMatrix, strideOf } from '../../gpu/device/resources.ts';
import { squaredError } from '../../gpu/tasks/squared-error.ts';
import { updateRows } from '../../gpu/update/half-iteration.ts';
import { addHalf } from '../../gpu/kernels/copies/to-half.ts';
import type { UpdateVariant } from '../../gpu/update/variant.ts';
import { updateVariants } from '../../gpu/update/variants.ts';
import type { RatingBlock } from '../../operators/ratings/rating-block.ts';
import { loadBlocks } from './load-blocks.ts';

/** One way to train. */
export interface TrainingSetting {
  readonly rank: number;
  /** Of CG; 0 for Cholesky. */
  readonly steps: number;
  readonly lambda?: number;
  readonly variant: UpdateVariant;
}

export type Side = 'items' | 'users';

/** Milliseconds of one iteration: both sides until the host knows that they have ended, and their kernels on the GPU where asked for. */
export interface IterationTimes {
  readonly wall: number;
  readonly sides: Readonly<Record<Side, number>>;
  readonly kernels: Readonly<Record<Side, KernelTimes>>;
  /** "row 3 of items": rows whose factors are not finite. */
  readonly bad: readonly string[];
}

/** Factors of one rank: x and θ, the places of their next versions, and the start of x. */
interface Factors {
  readonly rank: number;
  readonly start: GPUBuffer;
  x: DeviceMatrix;
  nextX: DeviceMatrix;
  theta: DeviceMatrix;
  nextTheta: DeviceMatrix;
}

export class HalfIterations {
  readonly gpu: Gpu;
  /** Lines that describe the GPU and the data. */
  readonly description: readonly string[];
  readonly users: DeviceBlock;
  readonly items: DeviceBlock;
  readonly #test: DeviceBlock;
  #factors: Factors | undefined;

  private constructor(gpu: Gpu, description: readonly string[], [users, items, test]: readonly DeviceBlock[]) {
    this.gpu = gpu;
    this.description = description;
    this.users = users;
    this.items = items;
    this.#test = test;
  }

  /** Opens the GPU and moves a data set to it. */
  static async open(folder: string): Promise<HalfIterations> {
    const gpu = await Gpu.open();
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

  /** The variants that this GPU admits, best first by rule. */
  variants(rank: number, steps: number): UpdateVariant[] {
    return updateVariants(this.gpu.info, { rank, cgSteps: steps, solver: steps === 0 ? 'cholesky' : 'cg', biases: false });
  }

  /** Resets the factors of a rank to the start; those of another rank are freed. */
  async restart(rank: number): Promise<void> {
    if (this.#factors?.rank !== rank) await this.#make(rank);
    const { x, theta, start } = this.#require();
    const encoder = this.gpu.device.createCommandEncoder({ label: 'start' });
    encoder.copyBufferToBuffer(start, 0, x.values, 0, x.rows * x.stride * 4);
    encoder.clearBuffer(theta.values);
    this.gpu.device.queue.submit([encoder.finish()]);
    const pass = this.gpu.pass('start');
    await addHalf(this.gpu, pass, x);
    await pass.submit();
  }

  /** Solves θ, then x. */
  async iterate({ rank, steps, lambda = 0.05, variant }: TrainingSetting, timed = false): Promise<IterationTimes> {
    const factors = this.#require();
    const { gpu, users, items } = this;
    const settings = { variant, from: 0, rank, lambda, mean: 0, solver: steps === 0 ? ('cholesky' as const) : { steps }, scale: 1 };
    const begin = performance.now();
    const one = await updateRows(gpu, { block: items, fixed: factors.x, previous: factors.theta, factors: factors.nextTheta }, { ...settings, to: items.rows }, { timed });
    [factors.theta, factors.nextTheta] = [factors.nextTheta, factors.theta];
    const middle = performance.now();
    const two = await updateRows(gpu, { block: users, fixed: factors.theta, previous: factors.x, factors: factors.nextX }, { ...settings, to: users.rows }, { timed });
    [factors.x, factors.nextX] = [factors.nextX, factors.x];
    const end = performance.now();
    const bad = [...(one.badRow < 0 ? [] : [`row ${one.badRow} of items`]), ...(two.badRow < 0 ? [] : [`row ${two.badRow} of users`])];
    return { wall: end - begin, sides: { items: middle - begin, users: end - middle }, kernels: { items: one.times, users: two.times }, bad };
  }

  /** Test RMSE of the factors as they are. */
  async rmse(): Promise<number> {
    const { x, theta } = this.#require();
    const unused = (name: string) => {
      throw new Error(`the bench gives no ${name}`);
    };
    const scope: GpuScopeOf<'squared-error'> = {
      gpu: this.gpu,
      params: { from: 0, to: this.#test.rows, rank: x.columns },
      matrix: (name) => (name === 'rowFactors' ? x : theta),
      block: () => this.#test,
      has: () => false,
      submitted: () => undefined,
      list: unused,
      matrixWithHalf: unused,
      vector: unused,
      partition: unused,
      cancelled: () => false,
    };
    const { squared, count } = (await squaredError(scope)).values;
    return Math.sqrt(squared / count);
  }

  /** x and θ as they are; only until the next iteration. */
  factors(): { readonly x: DeviceMatrix; readonly theta: DeviceMatrix } {
    return this.#require();
  }

  #require(): Factors {
    if (this.#factors === undefined) throw new Error('restart() makes the factors');
    return this.#factors;
  }

  async #make(rank: number): Promise<void> {
    if (this.#factors !== undefined) {
      const { start, x, nextX, theta, nextTheta } = this.#factors;
      start.destroy();
      for (const { values, half } of [x, nextX, theta, nextTheta]) {
        values.destroy();
        half?.destroy();
      }
      this.#factors = undefined;
    }
    const { gpu, users, items } = this;
    const stride = strideOf(rank);
    const matrix = async (rows: number): Promise<DeviceMatrix> => ({ rows, columns: rank, stride, values: await gpu.buffer(rows * stride * 4, 'factors'), half: await gpu.buffer((rows + 1) * stride * 2, 'half') });
    const start = await gpu.bufferOf(randomRows(users.rows, rank), 'start');
    this.#factors = { rank, start, x: await matrix(users.rows), nextX: await matrix(users.rows), theta: await matrix(items.rows), nextTheta: await matrix(items.rows) };
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

async function deviceBlock(gpu: Gpu, { rows, ratings, offsets, indices, values }: RatingBlock): Promise<DeviceBlock> {
  return { rows, ratings, offsets, columns: indices, rowPointers: await gpu.bufferOf(offsets, 'offsets'), indices: await gpu.bufferOf(indices, 'indices'), values: await gpu.bufferOf(values, 'values'), prepared: new Map() };
}

/** Milliseconds from the submission of nothing until the host has four bytes back. */
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
