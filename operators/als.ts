import { DivergedError } from '../engine/errors.ts';
import type { Device } from '../engine/executor.ts';
import { type KeyColumn, keyText } from '../engine/keys/key-column.ts';
import { keyHashes } from '../engine/keys/key-hash.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import type { AlsParams } from './als-params.ts';
import { factorStride } from './partition.ts';
import type { RatingBlock } from './rating-block.ts';
import type { RatingBlocks } from './rating-blocks.ts';
import { ratingErrors, weightedNorm } from './rating-errors.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';
import { chooseSolver } from './solver-choice.ts';
import { StoppingRule } from './stopping-rule.ts';
import type { InitializeTask, SolverChoice, UpdateTask } from './tasks.ts';

export interface AlsIteration {
  /** From 1. */
  readonly iteration: number;
  /** Both half-iterations, without evaluation. */
  readonly seconds: number;
  /** J = Σ (r - xᵀθ)² + λ (Σ n_u ‖x_u‖² + Σ n_v ‖θ_v‖²), in float64. */
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
}

export interface AlsResult {
  /** X (m x f) and Θ (n x f), row-major without padding. */
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
  readonly iterations: readonly AlsIteration[];
  /** The iteration whose factors these are. */
  readonly bestIteration: number;
}

/** One side of the factorization: whose rows are solved, and from which block. */
interface Side {
  readonly name: 'users' | 'items';
  readonly ids: KeyColumn;
  readonly block: RatingBlock;
  factors: PartitionRef;
}

/**
 * Explicit ALS with weighted-λ regularization (cuMF, section 2, eq. 1-2): each iteration solves all items from the users,
 * then all users from the items. One half-iteration routine serves both sides.
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
  readonly #name = dataSetName('als');
  readonly #live = new Map<string, PartitionRef>();
  #iterations: AlsIteration[] = [];

  constructor(input: AlsInput, params: AlsParams, ctx: ExecutionContext) {
    this.#input = input;
    this.#params = params;
    this.#ctx = ctx;
    this.#device = ctx.executor.devices[0];
    const { cgBelow, cgSteps } = chooseSolver(params);
    this.#solver = { cgBelow, cgSteps };
    this.#users = { name: 'users', ids: input.users, block: input.blocks.byUser, factors: this.#version('users', 0) };
    this.#items = { name: 'items', ids: input.items, block: input.blocks.byItem, factors: this.#version('items', 0) };
  }

  async train(): Promise<AlsResult> {
    const { maxIter } = this.#params;
    const keepBest = this.#params.earlyStop !== undefined;
    const rule = new StoppingRule(this.#params, this.#input.test);
    this.#allocate(this.#users.factors, this.#users.block.rows);
    this.#allocate(this.#items.factors, this.#items.block.rows);
    await this.#initialize(this.#users);
    let best = { iteration: 0, users: this.#users.factors, items: this.#items.factors };
    this.#ctx.events({ type: 'phase-start', phase: 'train', total: maxIter, unit: 'iterations' });
    const started = performance.now();
    for (let iteration = 1; iteration <= maxIter; iteration++) {
      const start = performance.now();
      await this.#halfIteration(this.#items, this.#users, iteration, keepBest ? best.items : undefined);
      await this.#halfIteration(this.#users, this.#items, iteration, keepBest ? best.users : undefined);
      const seconds = (performance.now() - start) / 1000;
      const report = { iteration, seconds, ...(await this.#evaluate(iteration)) };
      this.#iterations.push(report);
      this.#ctx.events({ type: 'iteration', of: maxIter, ...report });
      const verdict = rule.see(report);
      if (verdict.best) {
        for (const old of [best.users, best.items]) if (old !== this.#users.factors && old !== this.#items.factors) this.#release(old);
        best = { iteration, users: this.#users.factors, items: this.#items.factors };
      }
      if (verdict.stop !== undefined) {
        this.#ctx.events({ type: 'note', text: verdict.stop });
        break;
      }
    }
    this.#ctx.events({ type: 'phase-end', phase: 'train', seconds: (performance.now() - started) / 1000, done: this.#iterations.length, unit: 'iterations' });
    const [userFactors, itemFactors] = await Promise.all([best.users, best.items].map(async (ref) => (await this.#device.fetch(ref)).columns.values));
    return { userFactors: userFactors as Float32Array, itemFactors: itemFactors as Float32Array, iterations: this.#iterations, bestIteration: best.iteration };
  }

  /** Frees whatever the run still holds on the device. */
  release(): void {
    for (const ref of this.#live.values()) this.#device.release(ref);
    this.#live.clear();
  }

  /** Solves every row of `side` from the other side's factors; `kept` is a version that must survive. */
  async #halfIteration(side: Side, fixed: Side, iteration: number, kept?: PartitionRef): Promise<void> {
    const { rank, regParam } = this.#params;
    const previous = side.factors;
    const next = this.#version(side.name, iteration);
    this.#allocate(next, side.block.rows);
    const inputs = { block: side.block.ref, fixed: fixed.factors, previous };
    const tasks = balancedRanges(side.block.offsets, taskCount(side.block.ratings)).map(
      (range): UpdateTask => ({ kernel: 'update', inputs, outputs: { factors: next }, params: { ...range, rank, lambda: regParam, ...this.#solver } }),
    );
    const base = iteration - 1 + (side.name === 'users' ? 0.5 : 0);
    const onDone = (finished: number) =>
      this.#ctx.events({ type: 'phase-progress', phase: 'train', done: base + finished / tasks.length / 2, total: this.#params.maxIter, unit: 'iterations' });
    const results = await runStage(this.#ctx, `update-${side.name}`, this.#device, tasks, onDone);
    side.factors = next;
    if (previous !== kept) this.#release(previous);
    const bad = results.map(({ values }) => values.badRow as number).find((row) => row >= 0);
    if (bad === undefined) return;
    throw new DivergedError(
      `iteration ${iteration}, side ${side.name}: the normal equations of ${side.name === 'users' ? 'user' : 'item'} ${keyText(side.ids, bad)} (row ${bad}, ${side.block.offsets[bad + 1] - side.block.offsets[bad]} ratings) are singular or not finite`,
      { phase: 'train', advice: `Raise regParam (λ), which is ${regParam}, or scale the ratings down` },
    );
  }

  async #initialize(side: Side): Promise<void> {
    const { low, high } = keyHashes(side.ids);
    const keys = this.#version('keys', 0);
    this.#device.put(keys, { layout: 'key-hashes', rows: low.length, columns: { low, high } });
    const { rank, seed } = this.#params;
    const tasks = balancedRanges(side.block.offsets, taskCount(side.block.ratings)).map(
      (range): InitializeTask => ({ kernel: 'initialize', inputs: { keys }, outputs: { factors: side.factors }, params: { ...range, rank, seed } }),
    );
    await runStage(this.#ctx, 'initialize', this.#device, tasks);
    this.#device.release(keys);
  }

  async #evaluate(iteration: number): Promise<Pick<AlsIteration, 'loss' | 'trainRmse' | 'testRmse' | 'testMae'>> {
    const { rank, regParam } = this.#params;
    const [users, items] = [this.#users, this.#items];
    const train = await ratingErrors('train-error', users.block, users.factors, items.factors, rank, this.#device, this.#ctx);
    const norms =
      (await weightedNorm('train-error', users.block, users.factors, rank, this.#device, this.#ctx)) +
      (await weightedNorm('train-error', items.block, items.factors, rank, this.#device, this.#ctx));
    const loss = train.squared + regParam * norms;
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
    const sums = await ratingErrors('test-error', test, users.factors, items.factors, rank, this.#device, this.#ctx);
    return { loss, trainRmse, testRmse: Math.sqrt(sums.squared / sums.count), testMae: sums.absolute / sums.count };
  }

  #version(side: string, version: number): PartitionRef {
    return { name: `${this.#name}/${side}`, partition: 0, version };
  }

  #allocate(ref: PartitionRef, rows: number): void {
    const { rank } = this.#params;
    this.#device.allocate(ref, { rows, columns: rank, stride: factorStride(rank) });
    this.#live.set(`${ref.name}@${ref.version}`, ref);
  }

  #release(ref: PartitionRef): void {
    this.#device.release(ref);
    this.#live.delete(`${ref.name}@${ref.version}`);
  }
}
