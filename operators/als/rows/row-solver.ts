import { DivergedError } from '../../../engine/errors.ts';
import { type KeyColumn, keyCount, keyText, UNKNOWN_KEY } from '../../../engine/keys/key-column.ts';
import { roundToHalf, copyNumbers } from '../../../engine/numbers/half.ts';
import { sharedArray, dataSetName, partitionRef } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { runSteps, freeAt, giveTo } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { factorStride } from '../../planner/sizes.ts';
import { hostForm, largestRating, longestRow, type RatingBlock, rowsOfBlock } from '../../ratings/ratings.ts';
import { rangesOfSize } from '../../ratings/row-ranges.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { valuesOfStage } from '../../tasks/run-tasks.ts';
import type { SolverChoice } from '../../tasks/task-types.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { SizedAlsParams } from '../als-params.ts';
import { implicitWeights, unobservedWeightOf } from '../implicit/weights.ts';
import { chooseKernels } from '../kernel-choices.ts';
import { kernelOf } from '../plan/stages.ts';
import { inUnit } from '../rating-unit.ts';
import { largestOfRow, type RowSizes, unsolvedAdvice } from '../solved-loss.ts';
import { chooseSolver, solverParams } from '../solver-choice.ts';
import { drawRows } from '../start.ts';
import { tilingOf } from '../tiles.ts';
import {
  emptyGram,
  gramOf,
  type PlacedFactors,
  type RowRule,
  type RowsSolver,
  slicesOf,
  factorsOf,
  outcomeOf,
  RowsRun,
  shiftsOf,
  type SolveOutcome,
  type GivenRows,
  solveRows,
  type RowsSolving,
} from './solve-rows.ts';

const STAGE = 'solve-rows';

/**
 * Solves the factors of a block of rows of R (some users with all their ratings, or some items with all
 * theirs) from the factors of the other side, which is fixed. It computes the half-iteration of ALS for a
 * part of the rows, with the same bits as training. For long rows that a CPU solves tile by tile (see
 * tilingOf), the same bits require that `columns` counts all rows of the other side.
 *
 * The ratings stay on the device. The current version of the rows, and the fixed side, stay in host memory.
 * There are no biases. Matrices are row-major without padding, in the unit of training (see toUnit).
 */
export class RowSolver {
  /** Ids of the rows, ascending. */
  readonly keys: KeyColumn;
  readonly columns: number;
  readonly block: RatingBlock;
  readonly #params: SizedAlsParams;
  readonly #rule: RowRule;
  readonly #unit: number;
  readonly #ctx: ExecutionContext;
  readonly #device: Device;
  #fixed: Float32Array | PlacedFactors = new Float32Array(0);
  #rows: Float32Array = new Float32Array(0);
  #version: number | undefined;
  /** The objective of the rows in memory, if they were solved here by a kernel that computes it. */
  #objective = NaN;
  #isRounded = false;
  /** Memory for the bits of the rows in float16. */
  #halves: Uint16Array | undefined;
  /** The largest rating and Σ r², once they are needed. */
  readonly #known: { largest?: number; squares?: number } = {};

  /**
   * `block`: the ratings. Its rows belong to `keys`; its columns are row numbers of the other side, below
   * `columns`. `unit`: the number by which ratings are divided (see ratingUnit); it must be the same for all
   * blocks of a training.
   */
  constructor(
    block: RatingBlock,
    { keys, columns, unit }: { readonly keys: KeyColumn; readonly columns: number; readonly unit: number },
    params: SizedAlsParams,
    ctx: ExecutionContext,
  ) {
    this.keys = keys;
    this.columns = columns;
    this.#unit = unit;
    this.block = inUnit(block, unit);
    this.#params = params;
    this.#ctx = ctx;
    this.#device = computeDevice(ctx.executor);
    const { rank, regParam, regExponent, nonnegative, implicitPrefs } = params;
    this.#rule = {
      rank,
      lambda: regParam / (implicitPrefs ? 1 : unit),
      ...(regExponent === 1 ? {} : { exponent: regExponent }),
      nonnegative,
      ...(implicitPrefs && {
        implicit: { ...implicitWeights(params), unobserved: unobservedWeightOf(params) },
      }),
    };
  }

  /** The version number of the rows in memory; undefined before the first. */
  get version(): number | undefined {
    return this.#version;
  }

  /** Draws the initial rows, by seed and id, and keeps them under this version number. */
  async start(version: number): Promise<Float32Array> {
    const values = this.#isEmpty
      ? new Float32Array(0)
      : await drawRows(this.keys, this.#params, this.#unit, slicesOf(this.block, this.#device), this.#ctx);
    return this.#hold(version, values);
  }

  /** Sets the factors of the fixed side, `columns` x rank, in the unit of training (see toUnit). */
  fix(factors: Float32Array | PlacedFactors): void {
    this.#fixed = factors;
  }

  /** Factors in the unit of training: scaled for ratings divided by `unit`. */
  toUnit(factors: Float32Array): Float32Array {
    return this.#unit === 1 ? factors : factors.map((value) => value / Math.sqrt(this.#unit));
  }

  /** Memory for the rows of the fixed side, which are then placed in any order. */
  fixedFactors(): Promise<FixedFactors> {
    return FixedFactors.of({ rows: this.columns, rank: this.#params.rank }, this.#device, this.#ctx);
  }

  /** Factors in the unit of the given ratings. */
  ofUnit(values: Float32Array): Float32Array {
    return this.#unit === 1 ? values : values.map((value) => value * Math.sqrt(this.#unit));
  }

  /** Keeps rows of another RowSolver, in the unit of training, under this version number. */
  give(version: number, rows: Float32Array): void {
    this.#hold(version, rows);
  }

  /** Gives up the rows in memory; `give` sets them again. */
  giveUp(): void {
    this.#version = this.#halves = undefined;
    this.#rows = new Float32Array(0);
  }

  /** The rows in memory, in the unit of training. */
  get rows(): Float32Array {
    return this.#rows;
  }

  /** The rows in memory at these positions, in the unit of training. */
  rowsAt(positions: Uint32Array): Float32Array {
    const { rank } = this.#params;
    const rows = new Float32Array(positions.length * rank);
    positions.forEach((position, at) => {
      rows.set(this.#rows.subarray(position * rank, (position + 1) * rank), at * rank);
    });
    return rows;
  }

  /** True if the rows in memory were rounded to float16. */
  get isRounded(): boolean {
    return this.#isRounded;
  }

  /** Rounds the rows in memory to float16; returns the bits, in the unit of training, until the next call. */
  roundToHalf(): Uint16Array {
    if (this.#halves?.length !== this.#rows.length) this.#halves = new Uint16Array(this.#rows.length);
    roundToHalf(this.#rows, this.#halves);
    this.#isRounded = true;
    return this.#halves;
  }

  /**
   * Solves the rows from the fixed side and keeps them under this version number. Conjugate gradients start
   * from the rows in memory, or from zeros. `gram`: for implicit data, the Gram matrix of the whole fixed
   * side, rank x rank. `sums`: the rows' equations (see solveSummed), used instead of the fixed side. Throws
   * DivergedError for a row whose equations have no finite solution.
   */
  async solve(
    version: number,
    {
      fromZeros,
      gram: ofAll,
      sums,
    }: { readonly fromZeros: boolean; readonly gram?: Float64Array; readonly sums?: Float32Array },
  ): Promise<Float32Array> {
    if (this.#isEmpty) return this.#hold(version, new Float32Array(0));
    const { rank } = this.#params;
    const gram = emptyGram(rank);
    if (ofAll) gram.set(ofAll);
    const isFirst = this.#version === undefined;
    const rows = isFirst ? sharedArray(Float32Array, this.block.rows * rank) : this.#rows;
    const { block, columns } = this;
    const given = { own: rows, block, columns, fromZeros: isFirst || fromZeros, gram };
    const solving = { stage: STAGE, rule: this.#rule, device: this.#device };
    const { badRow, objective } = sums
      ? await solveSummed(given, sums, { ...solving, solver: this.#choice() }, this.#ctx)
      : await solveInPlace(given, this.#fixed, { ...solving, solver: await this.#solver() }, this.#ctx);
    const solved = this.#hold(version, rows);
    this.#objective = objective;
    if (badRow >= 0) throw divergedRow(badRow, this, { params: this.#params, unit: this.#unit });
    return solved;
  }

  #choice(): SolverChoice {
    return solverParams(chooseSolver(this.#params, this.#device.info.kind));
  }

  /** The solver's name, as in plans; `summed`: of rows solved from sums of equations. */
  kernelName(summed: boolean): string {
    const task = summed ? 'solve-equations' : this.#params.implicitPrefs ? 'update-implicit' : 'update';
    return `${task} ${chooseSolver(this.#params, this.#device.info.kind).kernel}`;
  }

  async #solver(): Promise<RowsSolver> {
    const [params, { info }] = [this.#params, this.#device];
    const solver = this.#choice();
    const tiled = tilingOf(params, solver, this.columns, info);
    const problem = {
      users: this.block.rows,
      items: this.columns,
      ratings: this.block.ratings,
      longestUser: longestRow(this.block),
      largestRating: (this.#known.largest ??= largestRating(this.block)),
    };
    const choices = await chooseKernels(problem, params, this.#ctx);
    return { ...solver, ...kernelOf(choices?.users), ...(tiled ? { tiled } : {}) };
  }

  /** The contribution of the rows in memory to the Gram matrix of their side, rank x rank. */
  async gram(): Promise<Float64Array> {
    const { rank } = this.#params;
    const gram = await gramOf(this.#rows, { rank, weight: 1 }, this.#device, this.#ctx);
    return Float64Array.from(gram.subarray(0, rank * rank));
  }

  /**
   * The contribution of the rows to the loss. `errors`: true to include the errors of the ratings. Only the
   * blocks of one side may report them, since every rating is in a block of each side.
   */
  async loss(errors: boolean): Promise<RowsLoss | { readonly penalty: number }> {
    const { block, columns } = this;
    const [unit, device] = [this.#unit, this.#device];
    const { rank, implicitPrefs, regExponent, regParam } = this.#params;
    if (this.#isEmpty)
      return implicitPrefs ? { observed: 0, penalty: 0 } : { squared: 0, absolute: 0, count: 0, penalty: 0 };
    const run = new RowsRun(ROWS_LOSS, device, this.#ctx);
    const factors = run.send('rows', factorsOf(this.#rows, rank));
    const columnFactors = run.factors('fixed', this.#fixed, rank);
    const inputs = { block: block.ref, rowFactors: factors, columnFactors };
    const slices = slicesOf(block, device);
    const sumOf = (values: readonly { readonly sum: number }[]) =>
      values.reduce((all, one) => all + one.sum, 0);
    if (implicitPrefs) {
      const shifts = run.send('shifts', shiftsOf(block, columns, this.#rule));
      const params = { rank, ...implicitWeights(this.#params) };
      if (errors) run.sliced({ kernel: 'implicit-error', inputs, outputs: {}, params }, slices);
      run.sliced(
        { kernel: 'weighted-norm', inputs: { shifts, factors }, outputs: {}, params: { rank } },
        slices,
      );
      const results = await run.end();
      return {
        ...(errors ? { observed: sumOf(valuesOfStage(results, ROWS_LOSS, 'implicit-error')) } : {}),
        penalty: sumOf(valuesOfStage(results, ROWS_LOSS, 'weighted-norm')),
      };
    }
    const params = { rank, ...(regExponent === 1 ? {} : { exponent: regExponent }) };
    if (errors) run.sliced({ kernel: 'squared-error', inputs, outputs: {}, params: { rank } }, slices);
    run.sliced(
      { kernel: 'weighted-norm', inputs: { block: block.ref, factors }, outputs: {}, params },
      slices,
    );
    const results = await run.end();
    const penalty = regParam * unit * sumOf(valuesOfStage(results, ROWS_LOSS, 'weighted-norm'));
    if (!errors) return { penalty };
    const squares = valuesOfStage(results, ROWS_LOSS, 'squared-error');
    const total = (name: 'squared' | 'absolute' | 'count') =>
      squares.reduce((all, values) => all + values[name], 0);
    return {
      squared: unit ** 2 * total('squared'),
      absolute: unit * total('absolute'),
      count: total('count'),
      penalty,
    };
  }

  /**
   * The contribution of solved rows to the loss, from the objective of their solve: without a pass over the
   * ratings, and without the fixed side. Undefined for implicit data, where the kernel does not compute the
   * objective, and where Σ r² is more than `most` times the squared error, since cancellation leaves few digits.
   */
  async solvedLoss(most: number): Promise<SolvedRowsLoss | undefined> {
    if (this.#isEmpty) return { squared: 0, count: 0, penalty: 0 };
    if (Number.isNaN(this.#objective) || this.#params.implicitPrefs) return undefined;
    const { penalty } = await this.loss(false);
    const squares = this.#unit ** 2 * (this.#known.squares ??= squaresOf(this.block));
    const squared = squares + this.#unit ** 2 * this.#objective - penalty;
    if (!(squared * most > squares)) return undefined;
    return { squared, count: this.block.ratings, penalty };
  }

  /** Frees the device's memory. */
  async forget(): Promise<void> {
    if (this.#isEmpty) return;
    await freeAt(this.#ctx, STAGE, this.#device.info.place, [this.block.ref]);
  }

  /** Sends the ratings to the device, once. */
  async place(): Promise<void> {
    if (this.#isEmpty) return;
    await giveTo(this.#ctx, this.#device.info.place, [[this.block.ref, hostForm(this.block)]]);
  }

  /** True for a block without rows, which is never sent to a device. */
  get #isEmpty(): boolean {
    return this.block.rows === 0;
  }

  /** Keeps the rows, and returns them. */
  #hold(version: number, values: Float32Array): Float32Array {
    this.#version = version;
    this.#isRounded = false;
    this.#rows = values;
    this.#objective = NaN;
    return values;
  }
}

/** The error for a row of a block whose equations have no finite solution. */
function divergedRow(
  row: number,
  { block, keys }: { readonly block: RatingBlock; readonly keys: KeyColumn },
  sizes: Pick<RowSizes, 'params' | 'unit'>,
): DivergedError {
  const id = keyText(keys, Math.min(row, keyCount(keys) - 1));
  const count = block.offsets[row + 1] - block.offsets[row];
  return new DivergedError(
    `the normal equations of the row ${id} (${count} ratings) are singular or not finite`,
    {
      phase: 'train',
      id,
      advice: unsolvedAdvice({ ...sizes, count, largest: largestOfRow(block, row) }),
    },
  );
}

/** Most bytes of the rows that a CPU solves at a time. Tests lower it. */
export const chunkLimit = { bytes: 32 << 20 };

/** Ranges of rows that are solved one after the other, so that their matrices take little memory. */
export function chunksOf(rows: number, numbers: number): RowRange[] {
  const most = Math.max(1, Math.floor(chunkLimit.bytes / (4 * numbers)));
  return rangesOfSize(rows, most);
}

/** Rows to solve, over the rows before. `fromZeros`: conjugate gradients start from zeros. */
interface RowsInPlace extends Pick<GivenRows, 'block' | 'columns'> {
  readonly own: Float32Array;
  readonly fromZeros: boolean;
  /** For implicit data the Gram matrix of the whole fixed side, else not read. */
  readonly gram: Float32Array;
}

/**
 * Solves the rows in chunks. Rows do not depend on each other, so the chunks do not change their bits. A
 * row without a finite solution ends the work after its chunk: later chunks stay as they were.
 * `numbers`: of a row on the device.
 */
async function inChunks(
  { own, block: all, ...rows }: RowsInPlace,
  { stage, rule: { rank } }: Pick<RowsSolving, 'stage' | 'rule'>,
  numbers: number,
  solve: (rows: RowsInPlace, from: number, to: number) => Promise<SolveOutcome>,
): Promise<SolveOutcome> {
  const name = dataSetName(stage);
  let objective = 0;
  for (const { from, to } of chunksOf(all.rows, numbers)) {
    const block = rowsOfBlock(all, from, to, { name, partition: from, version: 0 });
    const before = own.subarray(from * rank, to * rank);
    const solved = await solve({ ...rows, own: before, block }, from, to);
    objective += solved.objective;
    if (solved.badRow >= 0) return { badRow: from + solved.badRow, objective };
  }
  return { badRow: -1, objective };
}

/** Solves rows from the fixed side. Their ratings are on the device; a CPU solves some rows at a time. */
async function solveInPlace(
  rows: RowsInPlace,
  fixed: Float32Array | PlacedFactors,
  solving: RowsSolving,
  ctx: ExecutionContext,
): Promise<SolveOutcome> {
  const { kind, strideStep } = solving.device.info;
  const stride = factorStride(solving.rule.rank, strideStep);
  const solve = async ({ own, fromZeros, ...others }: RowsInPlace, placed: boolean) => {
    const given = { ...others, fixed, placed, into: own, ...(fromZeros ? {} : { previous: own }) };
    const { factors, badRow, objective } = await solveRows(given, solving, ctx);
    if (factors !== own) own.set(factors);
    return { badRow, objective };
  };
  return kind !== 'cpu' || chunksOf(rows.block.rows, stride).length <= 1
    ? solve(rows, true)
    : inChunks(rows, solving, stride, (chunk) => solve(chunk, false));
}

/**
 * Solves rows from `sums`: for each row its A, b and number of ratings, summed already (see equationLayout).
 * Regularization and the Gram matrix are added here, once. Of the rows' ratings only the numbers are read.
 */
function solveSummed(
  rows: RowsInPlace,
  sums: Float32Array,
  solving: Omit<RowsSolving, 'solver'> & { readonly solver: SolverChoice },
  ctx: ExecutionContext,
): Promise<SolveOutcome> {
  const { stage, solver, device, rule } = solving;
  const { implicit, nonnegative: _, ...regularization } = rule;
  const { rank } = rule;
  const numbers = equationColumns(rank, false);
  return inChunks(rows, solving, numbers, async ({ own, block, columns = 0, gram, fromZeros }, from, to) => {
    const run = new RowsRun(stage, device, ctx);
    const inputs = {
      equations: run.send('equations', factorsOf(sums.subarray(from * numbers, to * numbers), numbers)),
      previous: fromZeros
        ? run.matrix('previous', block.rows, rank)
        : run.send('previous', factorsOf(own, rank)),
      ...(implicit && {
        gram: run.send('gram', factorsOf(gram, rank)),
        shifts: run.send('shifts', shiftsOf(block, columns, rule)),
      }),
    };
    const factors = run.matrix('factors', block.rows, rank);
    const params = { ...regularization, ...solver };
    run.sliced({ kernel: 'solve-equations', inputs, outputs: { factors }, params }, slicesOf(block, device));
    run.handOut(factors);
    const results = await run.end();
    own.set(results.handed[0].columns.values as Float32Array);
    return outcomeOf(valuesOfStage(results, stage, 'solve-equations'));
  });
}

const ROWS_LOSS = 'rows-loss';

/**
 * The contribution of a block of rows to the loss: the errors of its ratings, in the unit of the given
 * ratings, and its penalty. For implicit data, `observed` is the sum over its observed pairs.
 */
type RowsLoss =
  | { readonly squared: number; readonly absolute: number; readonly count: number; readonly penalty: number }
  | { readonly observed: number; readonly penalty: number };

/** The contribution of explicit ratings, from the objective of the solve. */
type SolvedRowsLoss = { readonly squared: number; readonly count: number; readonly penalty: number };

/** Σ r² of a block, in the unit of training. */
function squaresOf({ values }: RatingBlock): number {
  let squares = 0;
  for (let k = 0; k < values.length; k++) squares += values[k] ** 2;
  return squares;
}

const FIXED_ROWS = 'fixed-rows';

/**
 * Factors of a fixed side that arrive in pieces, in any order. A CPU has them in its own memory alone, into
 * which each piece is copied; for other devices they are collected in host memory.
 */
export class FixedFactors {
  readonly #rows: number;
  readonly #rank: number;
  readonly #device: Device;
  readonly #ctx: ExecutionContext;
  /** On a CPU undefined. */
  readonly #collected: Float32Array | undefined;
  readonly #all = partitionRef(`${dataSetName(FIXED_ROWS)}/all`);

  private constructor(rows: number, rank: number, device: Device, ctx: ExecutionContext) {
    [this.#rows, this.#rank, this.#device, this.#ctx] = [rows, rank, device, ctx];
    if (device.info.kind !== 'cpu') this.#collected = sharedArray(Float32Array, rows * rank);
  }

  /** Allocates a matrix. Throws CapacityError if the device has no room for it. */
  static async of(
    { rows, rank }: { readonly rows: number; readonly rank: number },
    device: Device,
    ctx: ExecutionContext,
  ): Promise<FixedFactors> {
    const made = new FixedFactors(rows, rank, device, ctx);
    if (made.#collected === undefined) await made.#allocate();
    return made;
  }

  /** The rows, for a solver. */
  get rows(): Float32Array | PlacedFactors {
    return this.#collected ?? { ref: this.#all, rows: this.#rows };
  }

  /**
   * Copies row i of `factors`, numbers or bits of float16, to the row positions[i], unless that is UNKNOWN_KEY.
   */
  async place(positions: Uint32Array, factors: Float32Array | Uint16Array): Promise<void> {
    if (this.#collected === undefined) return this.#copy(positions, factors);
    const rank = this.#rank;
    for (let row = 0; row < positions.length; row++)
      if (positions[row] !== UNKNOWN_KEY)
        copyNumbers(
          factors.subarray(row * rank, (row + 1) * rank),
          this.#collected.subarray(positions[row] * rank, (positions[row] + 1) * rank),
        );
  }

  /** Frees the device's memory. */
  async free(): Promise<void> {
    if (this.#collected !== undefined) return;
    await freeAt(this.#ctx, FIXED_ROWS, this.#device.info.place, [this.#all]);
  }

  async #allocate(): Promise<void> {
    const { place, strideStep } = this.#device.info;
    const steps = new StepList(contracts);
    const shape = { rows: this.#rows, columns: this.#rank, stride: factorStride(this.#rank, strideStep) };
    steps.allocate(FIXED_ROWS, place, this.#all, { ...shape, contents: 'any' });
    await runSteps(steps.steps, this.#ctx);
  }

  async #copy(positions: Uint32Array, factors: Float32Array | Uint16Array): Promise<void> {
    if (positions.length === 0) return;
    const shared = sharedArray(Uint32Array, positions.length);
    shared.set(positions);
    const run = new RowsRun(FIXED_ROWS, this.#device, this.#ctx);
    const at = { layout: 'row-positions', rows: positions.length, columns: { positions: shared } };
    run.task({
      kernel: 'scatter-rows',
      inputs: { rows: run.send('rows', factorsOf(factors, this.#rank)), positions: run.send('at', at) },
      outputs: { whole: this.#all },
      params: {},
    });
    await run.end();
  }
}
