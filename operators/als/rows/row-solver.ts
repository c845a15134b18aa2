import { type KeyColumn, keyCount, keyText } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { hostForm, largestRating, longestRow, type RatingBlock } from '../../ratings/rating-block.ts';
import type { SolverChoice } from '../../tasks/task-types.ts';
import { contracts } from '../../tasks/tasks.ts';
import { drawRows } from '../draw-rows.ts';
import { implicitWeights, unobservedWeightOf } from '../implicit/weights.ts';
import { chooseKernels } from '../kernel-choices.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import { kernelOf } from '../plan/half-iteration.ts';
import { inUnit } from '../rating-unit.ts';
import { chooseSolver, solverParams } from '../solver-choice.ts';
import { tilingOf } from '../tiles.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { roundToHalf } from '../../../engine/numbers/half.ts';
import { FixedFactors } from './fixed-factors.ts';
import { lossOfRows, type RowsLoss, type SolvedRowsLoss, squaresOf } from './rows-loss.ts';
import {
  emptyGram,
  gramOf,
  type PlacedFactors,
  type RowRule,
  type RowsSolver,
  slicesOf,
} from './solve-rows.ts';
import { solveInPlace } from './solve-in-place.ts';
import { solveSummed } from './solve-summed.ts';
import { DivergedError } from '../../../engine/errors.ts';
import { largestOfRow, type RowSizes, unsolvedAdvice } from '../unsolved-advice.ts';

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
    const given = { block, columns, fromZeros: isFirst || fromZeros, gram };
    const solving = { stage: STAGE, rule: this.#rule, device: this.#device };
    const { badRow, objective } = sums
      ? await solveSummed(rows, { ...given, sums }, { ...solving, solver: this.#choice() }, this.#ctx)
      : await solveInPlace(
          rows,
          { ...given, fixed: this.#fixed },
          { ...solving, solver: await this.#solver() },
          this.#ctx,
        );
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
  loss(errors: boolean): Promise<RowsLoss | { readonly penalty: number }> {
    const [params, rule, unit, device] = [this.#params, this.#rule, this.#unit, this.#device];
    const { block, columns } = this;
    const given = { block, columns, rows: this.#rows, fixed: this.#fixed };
    return lossOfRows(given, { errors, params, rule, unit, device }, this.#ctx);
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
    const steps = new StepList(contracts);
    steps.free(STAGE, this.#device.info.place, [this.block.ref]);
    await runSteps(steps.steps, this.#ctx);
  }

  /** Sends the ratings to the device, once. */
  async place(): Promise<void> {
    if (this.#isEmpty) return;
    const given: Given = [this.block.ref, hostForm(this.block), this.#device.info.place];
    await runSteps([], this.#ctx, { given: [given] });
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
