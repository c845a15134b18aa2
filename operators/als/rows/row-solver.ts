import { DivergedError } from '../../../engine/errors.ts';
import { type KeyColumn, keyCount, keyText } from '../../../engine/keys/key-column.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { type Given, runSteps, type StepResults } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { factorStride } from '../../planner/sizes.ts';
import { hostForm, longestRow, type RatingBlock } from '../../ratings/rating-block.ts';
import { balancedRanges, taskCount } from '../../ratings/row-ranges.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { valuesOfStage } from '../../tasks/task-values.ts';
import { contracts } from '../../tasks/tasks.ts';
import { gramSlices } from '../implicit/stages.ts';
import { drawRows } from '../draw-rows.ts';
import { implicitWeights, rowShifts } from '../implicit/weights.ts';
import { chooseKernels } from '../kernel-choices.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import { inUnit } from '../rating-unit.ts';
import { chooseSolver } from '../solver-choice.ts';
import { tiledSlices, tilingOf } from '../tiles.ts';

const STAGE = 'solve-rows';

/**
 * The terms of J that a block of rows has: errors of its ratings, in the ratings' own unit, and its penalty.
 */
export type RowsLoss =
  | { readonly squared: number; readonly absolute: number; readonly count: number; readonly penalty: number }
  | { readonly observed: number; readonly penalty: number };

/**
 * A block of rows of R, some users with all their ratings or some items with theirs, whose factors are solved
 * from those of the other side, which is held fixed: the half-iteration of ALS for a part of the rows, by the
 * tasks of training and with the same bits. Long rows that a CPU solves tile by tile (see tilingOf) have
 * those bits where `columns` are all rows of that side. The ratings, one version of the rows and the fixed
 * side stay on the device. Holds no biases. Matrices are row-major without padding, in the ratings' own unit.
 *
 */
export class RowSolver {
  /** Ids of the rows, ascending. */
  readonly keys: KeyColumn;
  readonly columns: number;
  readonly block: RatingBlock;
  readonly #params: SizedAlsParams;
  readonly #unit: number;
  readonly #ctx: ExecutionContext;
  readonly #device: Device;
  readonly #name = dataSetName('rows');
  #fixed = false;
  #version: number | undefined;
  #made = 0;

  /**
   * `block`: rows are `keys`, columns are positions of the other side from 0 to `columns`. `unit`: see
   * ratingUnit; the same for all blocks.
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
  }

  /** The version of the rows that is held. */
  get version(): number | undefined {
    return this.#version;
  }

  /** Draws the rows with which training begins, by seed and id, as version `version`. */
  async start(version: number): Promise<Float32Array> {
    if (this.#isEmpty) return this.#nothing(version);
    const values = await drawRows(this.keys, this.#params, this.#unit, this.#slices(), this.#ctx);
    await this.#replace(version, values);
    return this.#inRatings(values);
  }

  /** Takes the factors of the fixed side, `columns` x rank. */
  async fix(factors: Float32Array): Promise<void> {
    if (this.#isEmpty) return;
    const { place } = this.#device.info;
    const steps = new StepList(contracts);
    if (this.#fixed) steps.free(STAGE, place, [this.#ref('fixed')]);
    await this.#run(steps);
    await runSteps([], this.#ctx, {
      given: [[this.#ref('fixed'), factorsOf(this.#inUnit(factors), this.#params.rank), place]],
    });
    this.#fixed = true;
  }

  /** Takes rows that another solver has solved as version `version`. */
  async give(version: number, factors: Float32Array): Promise<void> {
    await this.#replace(version, this.#inUnit(factors));
  }

  /**
   * Solves the rows from the fixed side, with the held version as the start of conjugate gradients, or zeros.
   * `gram`: of implicit data G of the whole fixed side, rank x rank. Throws DivergedError for a row whose
   * equations have no finite solution.
   *
   */
  async solve(
    version: number,
    { fromZeros, gram }: { readonly fromZeros: boolean; readonly gram?: Float64Array },
  ): Promise<Float32Array> {
    if (this.#isEmpty) return this.#nothing(version);
    const { place, strideStep, choosesKernels, kind, parallelism } = this.#device.info;
    const params = this.#params;
    const { rank, implicitPrefs, nonnegative } = params;
    const shape = { rows: this.block.rows, columns: rank, stride: factorStride(rank, strideStep) };
    const next = this.#made + 1;
    const held = this.#version === undefined ? [] : [this.#rows()];
    const zeros = fromZeros || held.length === 0 ? [this.#ref('zeros')] : [];
    const [[previous], factors] = [[...zeros, ...held], this.#rows(next)];
    const steps = new StepList(contracts);
    for (const ref of zeros) steps.allocate(STAGE, place, ref, shape);
    steps.allocate(STAGE, place, factors, shape);
    const { cgBelow, cgSteps } = chooseSolver(params, kind);
    const problem = {
      users: this.block.rows,
      items: this.columns,
      ratings: this.block.ratings,
      longestUser: longestRow(this.block),
      largestRating: largestOf(this.block),
    };
    const choice = choosesKernels ? (await chooseKernels(problem, params, this.#ctx))?.users : undefined;
    const solved = {
      rank,
      cgBelow,
      cgSteps,
      nonnegative,
      ...(choice && {
        variant: choice.variant,
        precision: choice.precision,
        ratingScale: choice.ratingScale,
      }),
    };
    const inputs = { block: this.block.ref, fixed: this.#ref('fixed'), previous };
    const given: Given[] = [];
    const extra: PartitionRef[] = [];
    const kernel = implicitPrefs ? 'update-implicit' : 'update';
    if (implicitPrefs) {
      const [all, shifts] = [this.#ref('gram-of-all'), this.#ref('shifts')];
      given.push(
        [all, factorsOf(gramMatrix(gram ?? new Float64Array(rank * rank), rank), rank), place],
        [shifts, this.#shifts(), place],
      );
      extra.push(all, shifts);
      addSliced(
        steps,
        STAGE,
        place,
        {
          kernel: 'update-implicit',
          inputs: { ...inputs, gram: all, shifts },
          outputs: { factors },
          params: { ...solved, ...implicitWeights(params) },
        },
        this.#slices(),
      );
    } else {
      const tiled = tilingOf(params, { cgBelow, cgSteps }, this.columns, this.#device.info);
      const exponent = params.regExponent === 1 ? {} : { exponent: params.regExponent };
      addSliced(
        steps,
        STAGE,
        place,
        {
          kernel: 'update',
          inputs,
          outputs: { factors },
          params: {
            ...solved,
            lambda: params.regParam / this.#unit,
            ...exponent,
            ...(tiled ? { tiled } : {}),
          },
        },
        tiledSlices(this.block.offsets, this.#slices(), {
          tiling: tiled,
          fixedRows: this.columns,
          parallelism,
        }),
      );
    }
    steps.handOut(STAGE, factors, place);
    steps.free(STAGE, place, [...held, ...zeros, ...extra]);
    const results = await this.#run(steps, given);
    this.#made = next;
    this.#version = version;
    this.#check(results, kernel);
    return this.#inRatings(handed(results));
  }

  /** The part of the Gram matrix that the held rows have, rank x rank. */
  async gram(): Promise<Float64Array> {
    const { rank } = this.#params;
    if (this.#isEmpty) return new Float64Array(rank * rank);
    const { place, strideStep, wholePasses } = this.#device.info;
    const gram = this.#ref('gram');
    const steps = new StepList(contracts);
    steps.allocate(STAGE, place, gram, {
      rows: 16 * Math.ceil(rank / 16),
      columns: rank,
      stride: factorStride(rank, strideStep),
    });
    addSliced(
      steps,
      STAGE,
      place,
      { kernel: 'gram', inputs: { factors: this.#rows() }, outputs: { gram }, params: { rank, weight: 1 } },
      gramSlices(rank, wholePasses ?? false),
    );
    steps.handOut(STAGE, gram, place);
    steps.free(STAGE, place, [gram]);
    return Float64Array.from(handed(await this.#run(steps)).subarray(0, rank * rank));
  }

  /** The terms of the loss. `errors`: those of the ratings too, which the blocks of one side have. */
  async loss(errors: boolean): Promise<RowsLoss | { readonly penalty: number }> {
    const params = this.#params;
    const { rank, implicitPrefs, regExponent, regParam } = params;
    if (this.#isEmpty)
      return implicitPrefs ? { observed: 0, penalty: 0 } : { squared: 0, absolute: 0, count: 0, penalty: 0 };
    const { place } = this.#device.info;
    const steps = new StepList(contracts);
    const rows = this.#rows();
    const inputs = { block: this.block.ref, rowFactors: rows, columnFactors: this.#ref('fixed') };
    const given: Given[] = [];
    if (implicitPrefs) {
      const shifts = this.#ref('shifts');
      given.push([shifts, this.#shifts(), place]);
      if (errors)
        addSliced(
          steps,
          STAGE,
          place,
          { kernel: 'implicit-error', inputs, outputs: {}, params: { rank, ...implicitWeights(params) } },
          this.#slices(),
        );
      addSliced(
        steps,
        STAGE,
        place,
        { kernel: 'shifted-norm', inputs: { shifts, factors: rows }, outputs: {}, params: { rank } },
        this.#slices(),
      );
      steps.free(STAGE, place, [shifts]);
    } else {
      if (errors)
        addSliced(
          steps,
          STAGE,
          place,
          { kernel: 'squared-error', inputs, outputs: {}, params: { rank } },
          this.#slices(),
        );
      addSliced(
        steps,
        STAGE,
        place,
        {
          kernel: 'weighted-norm',
          inputs: { block: this.block.ref, factors: rows },
          outputs: {},
          params: { rank, ...(regExponent === 1 ? {} : { exponent: regExponent }) },
        },
        this.#slices(),
      );
    }
    const results = await this.#run(steps, given);
    const sum = (values: readonly { readonly sum: number }[]) =>
      values.reduce((all, one) => all + one.sum, 0);
    if (implicitPrefs)
      return {
        ...(errors ? { observed: sum(valuesOfStage(results, STAGE, 'implicit-error')) } : {}),
        penalty: sum(valuesOfStage(results, STAGE, 'shifted-norm')),
      };
    const unit = this.#unit;
    const penalty = regParam * unit * sum(valuesOfStage(results, STAGE, 'weighted-norm'));
    if (!errors) return { penalty };
    const squares = valuesOfStage(results, STAGE, 'squared-error');
    const total = (name: 'squared' | 'absolute' | 'count') =>
      squares.reduce((all, values) => all + values[name], 0);
    return {
      squared: unit ** 2 * total('squared'),
      absolute: unit * total('absolute'),
      count: total('count'),
      penalty,
    };
  }

  /** Frees what the device holds. */
  async forget(): Promise<void> {
    if (this.#isEmpty) return;
    const steps = new StepList(contracts);
    steps.free(STAGE, this.#device.info.place, [
      this.block.ref,
      ...(this.#fixed ? [this.#ref('fixed')] : []),
      ...(this.#version === undefined ? [] : [this.#rows()]),
    ]);
    await this.#run(steps);
  }

  /** Brings the ratings to the device, once. */
  async place(): Promise<void> {
    if (this.#isEmpty) return;
    await runSteps([], this.#ctx, {
      given: [[this.block.ref, hostForm(this.block), this.#device.info.place]],
    });
  }

  /** True for a block without rows, of which a device knows nothing. */
  get #isEmpty(): boolean {
    return this.block.rows === 0;
  }

  #nothing(version: number): Float32Array {
    this.#version = version;
    return new Float32Array(0);
  }

  async #replace(version: number, values: Float32Array): Promise<void> {
    if (this.#isEmpty) return void this.#nothing(version);
    const { place } = this.#device.info;
    const steps = new StepList(contracts);
    if (this.#version !== undefined) steps.free(STAGE, place, [this.#rows()]);
    await this.#run(steps);
    await runSteps([], this.#ctx, {
      given: [[this.#rows(++this.#made), factorsOf(values, this.#params.rank), place]],
    });
    this.#version = version;
  }

  #run(steps: StepList, given: readonly Given[] = []): Promise<StepResults> {
    return runSteps(steps.steps, this.#ctx, { given });
  }

  #ref(part: string): PartitionRef {
    return { name: `${this.#name}/${part}`, partition: 0, version: 0 };
  }

  /** The held rows; each version is a partition of its own. */
  #rows(version = this.#made): PartitionRef {
    return { name: `${this.#name}/rows`, partition: 0, version };
  }

  #slices() {
    const { offsets, ratings } = this.block;
    return balancedRanges(offsets, this.#device.info.wholePasses ? 1 : taskCount(ratings));
  }

  #shifts(): Partition {
    return {
      layout: 'row-shifts',
      rows: this.block.rows,
      columns: { values: rowShifts(this.block, this.columns, this.#params) },
    };
  }

  #check(results: StepResults, kernel: 'update' | 'update-implicit'): void {
    const bad = valuesOfStage(results, STAGE, kernel).find(({ badRow }) => badRow >= 0)?.badRow;
    if (bad === undefined) return;
    const row = Math.min(bad, keyCount(this.keys) - 1);
    const { offsets } = this.block;
    throw new DivergedError(
      `the normal equations of the row ${keyText(this.keys, row)} (${offsets[row + 1] - offsets[row]} ratings) are singular or not finite`,
      {
        phase: 'train',
        id: keyText(this.keys, row),
        advice: `Raise regParam (λ), which is ${this.#params.regParam}, or scale the ratings down`,
      },
    );
  }

  #inUnit(factors: Float32Array): Float32Array {
    return this.#unit === 1 ? factors : factors.map((value) => value / Math.sqrt(this.#unit));
  }

  #inRatings(factors: Float32Array): Float32Array {
    return this.#unit === 1 ? factors : factors.map((value) => value * Math.sqrt(this.#unit));
  }
}

function handed(results: StepResults): Float32Array {
  return results.handed[0].columns.values as Float32Array;
}

function factorsOf(values: Float32Array, rank: number): Partition {
  return { layout: 'factors', rows: values.length / rank, columns: { values } };
}

/** G with the rows up to its stride that solvers read. */
function gramMatrix(gram: Float64Array, rank: number): Float32Array {
  const values = sharedArray(Float32Array, 16 * Math.ceil(rank / 16) * rank);
  values.set(gram);
  return values;
}

function largestOf({ values }: RatingBlock): number {
  let largest = 0;
  for (let k = 0; k < values.length; k++) largest = Math.max(largest, Math.abs(values[k]));
  return largest;
}
