import { allEnded } from '../engine/all-ended.ts';
import { computeDevice, hostDevice } from '../engine/devices.ts';
import { DeviceLostError, DivergedError } from '../engine/errors.ts';
import type { Device } from '../engine/executor.ts';
import { type KeyColumn, keyText } from '../engine/keys/key-column.ts';
import { keyHashes } from '../engine/keys/key-hash.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import { type Phase, startPhase } from '../engine/phase.ts';
import { runStage } from '../engine/run-stage.ts';
import type { AlsParams } from './als-params.ts';
import { type FactorVersion, FactorVersions } from './factor-versions.ts';
import { foldBiases, meanRating, weightedBiasNorm } from './biases.ts';
import { HostCopy } from './host-copy.ts';
import type { AlsChoices } from './kernel-choices.ts';
import { placeBlock } from './place-block.ts';
import type { RatingBlock } from './rating-block.ts';
import type { RatingBlocks } from './rating-blocks.ts';
import { ratingErrors, weightedNorm } from './rating-errors.ts';
import { factorStride } from './partition.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';
import { chooseSolver } from './solver-choice.ts';
import { StoppingRule } from './stopping-rule.ts';
import type { InitializeTask, SolverChoice, UpdateTask, UploadTask } from './tasks.ts';

export interface AlsIteration {
  /** From 1. */
  readonly iteration: number;
  /** Both half-iterations, without evaluation. */
  readonly seconds: number;
  /** J = Σ (r - xᵀθ)² + λ (Σ n_u ‖x_u‖² + Σ n_v ‖θ_v‖²), in float64; with biases r - (μ + β + γ + xᵀθ), and ‖x_u‖² + β_u² for ‖x_u‖². */
  readonly loss: number;
  readonly trainRmse: number;
  readonly testRmse?: number;
  /** Mean absolute error on the validation set. */
  readonly testMae?: number;
}

export interface AlsInput {
  readonly blocks: RatingBlocks;
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** Known pairs of the validation set by user, over the same positions. */
  readonly test?: RatingBlock;
  /** The kernels that a GPU uses for each side. */
  readonly choices?: AlsChoices;
  /** Seconds between two copies of a GPU's factors to the host, at least; see HostCopy. */
  readonly copySeconds?: number;
}

export interface AlsResult {
  /** X (m x f) and Θ (n x f), row-major without padding; with biases both have two more features, see foldBiases. */
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
  readonly iterations: readonly AlsIteration[];
  /** The iteration whose factors these are. */
  readonly bestIteration: number;
  /** Set when the device was lost: these are the factors that had reached the host by then. */
  readonly lost?: DeviceLostError;
}

type Factors = Pick<AlsResult, 'userFactors' | 'itemFactors'>;

/** One side of the factorization: whose rows are solved, and from which block. */
interface Side {
  readonly name: 'users' | 'items';
  readonly ids: KeyColumn;
  readonly block: RatingBlock;
  factors: FactorVersion;
}

/**
 * Explicit ALS with weighted-λ regularization (cuMF, section 2, eq. 1-2): each iteration solves all items from the users,
 * then all users from the items. One half-iteration routine serves both sides. Throws DivergedError, and DeviceLostError
 * when a device is lost before any factors were copied from it.
 */
export async function trainAls(input: AlsInput, params: AlsParams, ctx: ExecutionContext): Promise<AlsResult> {
  const run = new AlsRun(input, params, ctx);
  try {
    return await run.train();
  } finally {
    run.release();
  }
}

class AlsRun {
  readonly #input: AlsInput;
  readonly #params: AlsParams;
  readonly #ctx: ExecutionContext;
  readonly #device: Device;
  readonly #solver: SolverChoice;
  readonly #users: Side;
  readonly #items: Side;
  readonly #versions: FactorVersions;
  /** What the kernels see: the rank and, with biases, the feature that is 1. */
  readonly #features: number;
  /** μ; 0 without biases. */
  readonly #mean: number;
  readonly #copy: HostCopy<Factors>;
  #iterations: AlsIteration[] = [];
  #phase: Phase | undefined;

  constructor(input: AlsInput, params: AlsParams, ctx: ExecutionContext) {
    this.#input = input;
    this.#params = params;
    this.#ctx = ctx;
    this.#device = computeDevice(ctx.executor);
    this.#copy = new HostCopy(input.copySeconds);
    this.#features = params.rank + (params.biases ? 1 : 0);
    const { cgBelow, cgSteps } = chooseSolver({ ...params, rank: this.#features }, this.#device.kind);
    this.#solver = { cgBelow, cgSteps };
    this.#mean = params.biases ? meanRating(input.blocks.byUser) : 0;
    this.#versions = new FactorVersions(this.#device, this.#features, params.biases);
    const { byUser, byItem } = input.blocks;
    this.#users = { name: 'users', ids: input.users, block: byUser, factors: this.#versions.create('users', 0, byUser.rows) };
    this.#items = { name: 'items', ids: input.items, block: byItem, factors: this.#versions.create('items', 0, byItem.rows) };
  }

  /** Ends with what was copied to the host when the device is lost. */
  async train(): Promise<AlsResult> {
    try {
      return await this.#iterate();
    } catch (error) {
      if (!(error instanceof DeviceLostError)) throw error;
      const { last } = this.#copy;
      if (last === undefined) throw new DeviceLostError(`${error.summary}; no iteration's factors had been copied to the host by then`, { ...error.details, phase: 'train' });
      return { ...last.factors, iterations: this.#iterations.filter(({ iteration }) => iteration <= last.iteration), bestIteration: last.iteration, lost: error };
    }
  }

  async #iterate(): Promise<AlsResult> {
    const { maxIter } = this.#params;
    const keepBest = this.#params.earlyStop !== undefined;
    const rule = new StoppingRule(this.#params, this.#input.test);
    await this.#upload();
    await this.#initialize(this.#users);
    let best = { iteration: 0, users: this.#users.factors, items: this.#items.factors };
    this.#phase = startPhase(this.#ctx.events, 'train', 'iterations', maxIter);
    for (let iteration = 1; iteration <= maxIter; iteration++) {
      const start = performance.now();
      await this.#solveBoth(iteration, keepBest ? best : undefined);
      const seconds = (performance.now() - start) / 1000;
      const report = { iteration, seconds, ...(await this.#evaluate(iteration)) };
      this.#iterations.push(report);
      this.#ctx.events({ type: 'iteration', of: maxIter, ...report });
      const verdict = rule.see(report);
      if (verdict.best) {
        for (const old of [best.users, best.items]) if (old !== this.#users.factors && old !== this.#items.factors) this.#versions.release(old);
        best = { iteration, users: this.#users.factors, items: this.#items.factors };
      }
      if (verdict.stop !== undefined) {
        this.#ctx.events({ type: 'note', text: verdict.stop });
        break;
      }
      if (this.#device.kind === 'gpu' && iteration < maxIter) await this.#copy.offer(best.iteration, () => this.#factorsOf(best));
    }
    this.#phase.end(this.#iterations.length);
    return { ...(await this.#factorsOf(best)), iterations: this.#iterations, bestIteration: best.iteration };
  }

  /** Frees whatever the run still holds on the device. */
  release(): void {
    this.#versions.releaseAll();
    if (this.#device === hostDevice(this.#ctx.executor)) return;
    for (const block of this.#blocks) this.#device.release(block.ref);
  }

  /** The factors of both sides as a model has them. */
  async #factorsOf(versions: { readonly users: FactorVersion; readonly items: FactorVersion }): Promise<Factors> {
    const [users, items] = await Promise.all([this.#fetch(versions.users), this.#fetch(versions.items)]);
    const { biases, rank } = this.#params;
    return biases ? foldBiases(users, items, this.#mean, rank) : { userFactors: users.values, itemFactors: items.values };
  }

  async #fetch({ matrix, bias }: FactorVersion) {
    const values = (await this.#device.fetch(matrix)).columns.values as Float32Array;
    return { values, bias: bias && ((await this.#device.fetch(bias)).columns.values as Float32Array) };
  }

  /** All items from the users, then all users from the items; the versions in `kept` must survive. */
  async #solveBoth(iteration: number, kept?: { readonly users: FactorVersion; readonly items: FactorVersion }): Promise<void> {
    const items = this.#halfIteration(this.#items, this.#users, iteration, kept?.items);
    if (!this.#device.inOrder) await items;
    await allEnded([items, this.#halfIteration(this.#users, this.#items, iteration, kept?.users)]);
  }

  /**
   * Solves every row of `side` from the other side's factors; `kept` is a version that must survive. On a device that works
   * in order the side's factors are the new ones at once, for whatever is sent there next.
   */
  async #halfIteration(side: Side, fixed: Side, iteration: number, kept?: FactorVersion): Promise<void> {
    const { regParam, nonnegative } = this.#params;
    const previous = side.factors;
    const next = this.#versions.create(side.name, iteration, side.block.rows);
    const inputs: Record<string, PartitionRef> = { block: side.block.ref, fixed: fixed.factors.matrix, previous: previous.matrix };
    if (fixed.factors.bias) inputs.fixedBias = fixed.factors.bias;
    if (previous.bias) inputs.previousBias = previous.bias;
    const outputs: Record<string, PartitionRef> = next.bias ? { factors: next.matrix, bias: next.bias } : { factors: next.matrix };
    const choice = this.#input.choices?.[side.name];
    const kernel = choice && { variant: choice.variant, precision: choice.precision, ratingScale: choice.ratingScale };
    const params = { rank: this.#features, lambda: regParam, ...this.#solver, mean: this.#mean, nonnegative, ...kernel };
    const tasks = balancedRanges(side.block.offsets, taskCount(side.block.ratings, this.#device.kind)).map(
      (range): UpdateTask => ({ kernel: 'update', inputs, outputs, params: { ...range, ...params } }),
    );
    const base = iteration - 1 + (side.name === 'users' ? 0.5 : 0);
    const onDone = (finished: number) => this.#phase?.progress(base + finished / tasks.length / 2);
    const running = runStage(this.#ctx, `update-${side.name}`, this.#device, tasks, onDone);
    if (!this.#device.inOrder) await running;
    side.factors = next;
    if (previous !== kept) this.#versions.release(previous);
    const results = await running;
    const bad = results.map(({ values }) => values.badRow as number).find((row) => row >= 0);
    if (bad === undefined) return;
    throw new DivergedError(
      `iteration ${iteration}, side ${side.name}: the normal equations of ${side.name === 'users' ? 'user' : 'item'} ${keyText(side.ids, bad)} (row ${bad}, ${side.block.offsets[bad + 1] - side.block.offsets[bad]} ratings) are singular or not finite`,
      { phase: 'train', advice: `Raise regParam (λ), which is ${regParam}, or scale the ratings down` },
    );
  }

  /** A GPU gets the blocks before the first iteration, which so takes as long as the others. */
  async #upload(): Promise<void> {
    if (this.#device === hostDevice(this.#ctx.executor)) return;
    const blocks = this.#blocks;
    for (const block of blocks) placeBlock(block, this.#ctx.executor);
    const tasks = blocks.map(({ ref }): UploadTask => ({ kernel: 'upload', inputs: { block: ref }, outputs: {}, params: {} }));
    await runStage(this.#ctx, 'upload', this.#device, tasks);
  }

  get #blocks(): RatingBlock[] {
    const { blocks, test } = this.#input;
    return [blocks.byUser, blocks.byItem, ...(test ? [test] : [])];
  }

  /** The start is drawn on the CPU whatever the device, so that it is the same in every bit. */
  async #initialize(side: Side): Promise<void> {
    const { low, high } = keyHashes(side.ids);
    const keys: PartitionRef = { name: dataSetName('keys'), partition: 0, version: 0 };
    const host = hostDevice(this.#ctx.executor);
    host.put(keys, { layout: 'key-hashes', rows: low.length, columns: { low, high } });
    const { rank, seed, biases, nonnegative } = this.#params;
    const { matrix } = side.factors;
    if (host !== this.#device) host.allocate(matrix, { rows: side.block.rows, columns: this.#features, stride: factorStride(this.#features, host.strideStep) });
    const tasks = balancedRanges(side.block.offsets, taskCount(side.block.ratings)).map(
      (range): InitializeTask => ({ kernel: 'initialize', inputs: { keys }, outputs: { factors: matrix }, params: { ...range, rank, seed, one: biases, nonnegative } }),
    );
    await runStage(this.#ctx, 'initialize', host, tasks);
    host.release(keys);
    if (host === this.#device) return;
    this.#device.put(matrix, await host.fetch(matrix));
    host.release(matrix);
  }

  async #evaluate(iteration: number): Promise<Pick<AlsIteration, 'loss' | 'trainRmse' | 'testRmse' | 'testMae'>> {
    const { regParam } = this.#params;
    const [users, items] = [this.#users, this.#items];
    const params = { rank: this.#features, mean: this.#mean };
    const factors = {
      rowFactors: users.factors.matrix,
      columnFactors: items.factors.matrix,
      ...(users.factors.bias && { rowBias: users.factors.bias, columnBias: items.factors.bias }),
    };
    const train = await ratingErrors('train-error', users.block, factors, params, this.#device, this.#ctx);
    const loss = train.squared + regParam * ((await this.#norm(users)) + (await this.#norm(items)));
    const first = this.#iterations[0]?.loss ?? loss;
    if (!Number.isFinite(loss) || loss > 10 * first) {
      throw new DivergedError(`iteration ${iteration}, side users: the loss is ${loss}, after ${first} in the first iteration`, {
        phase: 'train',
        advice: `Raise regParam (λ), which is ${regParam}, or use solver cholesky`,
      });
    }
    const trainRmse = Math.sqrt(train.squared / train.count);
    const { test } = this.#input;
    if (test === undefined || test.ratings === 0) return { loss, trainRmse };
    const sums = await ratingErrors('test-error', test, factors, params, this.#device, this.#ctx);
    return { loss, trainRmse, testRmse: Math.sqrt(sums.squared / sums.count), testMae: sums.absolute / sums.count };
  }

  /** Σ n_u (‖x_u‖² + β_u²) of a side. */
  async #norm({ block, factors }: Side): Promise<number> {
    const norm = await weightedNorm('train-error', block, factors.matrix, this.#features, this.#device, this.#ctx);
    if (factors.bias === undefined) return norm;
    const bias = (await this.#device.fetch(factors.bias)).columns.values as Float32Array;
    // The feature that is 1 counts once for each rating.
    return norm - block.ratings + weightedBiasNorm(block, bias);
  }
}
