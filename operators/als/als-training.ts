import { DivergedError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { RowPart } from '../../engine/row-parts.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import type { BoundRun } from '../training/bind-plan.ts';
import { partsOf, rowPartsOf } from '../training/joined-parts.ts';
import {
  normsOfSides,
  type SideNorms,
  testErrors,
  type TrainingErrors,
  trainingErrors,
} from '../training/loss.ts';
import type { Training } from '../training/training.ts';
import type { ValidationRanking } from '../evaluation/ranking/validation-metric.ts';
import { forSides } from '../params/table.ts';
import { isExact } from './solver-choice.ts';
import { biasPenalty } from './biases.ts';
import type { AlsData, TrainedFactors } from './bind/als-data.ts';
import { keptFactors } from './factor-matrices.ts';
import type { PositiveCounts } from './implicit/count-positive.ts';
import { implicitNames, implicitStages, TEST_PLACES } from './implicit/stages.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';
import { stepsOf } from './solver-choice.ts';
import { isTooLarge, largestOfRow, unsolvedAdvice } from './unsolved-advice.ts';
import type { RatingLevel } from './rating-unit.ts';
import { MOST_CANCELLED, solvedErrors, solvedObjective, squaresForObjective } from './solved-loss.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import { lengthOfRow, type Ratings } from '../ratings/ratings.ts';
import type { ValuesOf } from '../tasks/tasks.ts';
import { valuesOfStage } from '../tasks/task-values.ts';
import { unobservedWeightOf } from './implicit/weights.ts';

/** Facts about the ratings that the loss needs and that the measuring tasks do not return. */
export interface LossFacts {
  /** o of λ n^ν + o, in the ratings' unit. */
  readonly offset: number;
  readonly unit: number;
  readonly level: RatingLevel;
  /** For implicit data: see positiveTargets. */
  readonly targets: number;
  /** For implicit data. */
  readonly positive?: PositiveCounts;
}

/**
 * Errors of a thousandth of the ratings, squared. Below it a loss is what float32 leaves of a perfect fit, by
 * equations that may be nearly singular.
 */
const ROUNDING = 1e-6;

type AlsFunctions = Omit<Training<TrainedFactors>, 'bound' | 'keep' | 'given' | 'starting'>;

/** ALS on a bound plan, for the training loop. */
export class AlsTraining implements AlsFunctions {
  readonly startLoss = undefined;
  readonly errorsOfRound?: NonNullable<AlsFunctions['errorsOfRound']>;
  readonly #data: AlsData;
  readonly #params: SizedAlsParams;
  readonly #facts: LossFacts;
  readonly #ranking: ValidationRanking | undefined;
  readonly #bound: BoundRun['bound'];

  constructor(
    data: AlsData,
    params: SizedAlsParams,
    facts: LossFacts,
    ranking: ValidationRanking | undefined,
    bound: BoundRun['bound'],
  ) {
    this.#data = data;
    this.#params = params;
    this.#facts = facts;
    this.#ranking = ranking;
    this.#bound = bound;
    // If brief measurements skip a stage, the tasks that solve the users return the loss of their rows. The
    // errors are then computed from it.
    if (bound.phases.measure.some(({ brief }) => brief !== undefined))
      this.errorsOfRound = (measured, round) =>
        params.implicitPrefs
          ? this.#implicitOfRound(measured, round)
          : this.#explicitOfRound(measured, round);
  }

  round(number: number): JsonObject {
    const { byUser, byItem } = this.#data;
    const sizes = { users: byUser.rows, items: byItem.rows, ratings: byUser.ratings };
    return { cgSteps: stepsOf(this.#params, sizes, number) };
  }

  check(number: number, results: StepResults): void {
    const { slices } = this.#bound;
    const { unit } = this.#facts;
    requireSolved(number, results, { data: this.#data, slices, params: this.#params, unit });
  }

  errors(measured: StepResults): TrainingErrors {
    if (this.#params.implicitPrefs)
      return {
        ...implicitErrors(measured, this.#bound.name, this.#params),
        ...this.#rankingOf(measured),
      };
    return trainingErrors(
      measured,
      ({ users, items }) => this.#penaltyOf(users, 'users') + this.#penaltyOf(items, 'items'),
      this.#facts.unit,
    );
  }

  /**
   * The loss has diverged if it exceeds the first loss by nine times its size. The size is |first|, since the
   * loss of implicit data can be negative: each rating of a repeated pair is counted in place of an
   * unobserved zero, but the pair has only one such zero. A loss within ROUNDING of the loss of factors that
   * are 0 is a perfect fit, whose loss is rounding and may rise.
   */
  diverged(loss: number, first: number): boolean {
    return !(loss <= first + 9 * Math.abs(first) + ROUNDING * this.#squares);
  }

  /** Σ r², the loss if all factors are 0. */
  get #squares(): number {
    const { level, unit, targets } = this.#facts;
    return this.#params.implicitPrefs
      ? targets
      : this.#data.byUser.ratings * unit ** 2 * (level.mean ** 2 + level.deviation ** 2);
  }

  divergence(number: number, loss: number, first: number): DivergedError {
    const { regParam, solver } = this.#params;
    const change = isTooLarge(regParam / this.#facts.unit) ? 'Lower' : 'Raise';
    return new DivergedError(
      `iteration ${number}, side users: the loss is ${loss}, after ${first} in the first iteration`,
      {
        phase: 'train',
        iteration: number,
        side: 'users',
        advice: `${change} regParam (λ), which is ${regParam}${isExact(solver) ? '' : ', or use solver cholesky'}`,
      },
    );
  }

  factors(results: StepResults, last: boolean): TrainedFactors {
    const factors = { users: this.#side(results, 'users'), items: this.#side(results, 'items') };
    return last ? factors : keptFactors(factors);
  }

  #side(results: StepResults, side: 'users' | 'items'): RowPart[] {
    const { name } = this.#bound;
    const own = this.#params.biases ? partsOf(results, `${name}/${side}-bias`) : undefined;
    return rowPartsOf(results, `${name}/${side}`, own);
  }

  #implicitOfRound(measured: StepResults, round: StepResults): TrainingErrors | undefined {
    const errors = implicitErrorsOfSolve(measured, solvedObjective(round), this.#facts.targets);
    return errors && { ...errors, ...this.#rankingOf(measured) };
  }

  #explicitOfRound(measured: StepResults, round: StepResults): TrainingErrors | undefined {
    const { unit, level } = this.#facts;
    const { users, items } = normsOfSides(measured);
    const ofBiases = this.#params.biases ? items : undefined;
    return solvedErrors(
      solvedObjective(round),
      squaresForObjective(this.#data.byItem.ratings, level, ofBiases),
      { users: this.#penaltyOf(users, 'users'), items: this.#penaltyOf(items, 'items') },
      this.#data.byUser.ratings,
      unit,
      testErrors(measured, unit),
    );
  }

  #penaltyOf(norms: SideNorms, side: 'users' | 'items'): number {
    const { regParam, biasDamping } = this.#params;
    const { unit, offset } = this.#facts;
    return (
      (regParam / unit) * norms.weighted +
      offset * norms.plain +
      biasPenalty(norms, regParam, forSides(biasDamping)[side])
    );
  }

  #rankingOf(measured: StepResults): Pick<TrainingErrors, 'testMetrics'> | undefined {
    return this.#ranking && { testMetrics: this.#ranking.values(placesOf(measured, this.#bound.name)) };
  }
}

/**
 * The ranks and ties of the validation pairs, from all parts. A device that works on slices of users returns them in a
 * Float32Array whose bits are integers.
 */
function placesOf(measured: StepResults, name: string): Uint32Array {
  const parts = measured
    .partitions(`${name}/${TEST_PLACES}`)
    .map(({ columns: { values } }) => new Uint32Array(values.buffer, values.byteOffset, values.length));
  const places = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let filled = 0;
  for (const part of parts) {
    places.set(part, filled);
    filled += part.length;
  }
  return places;
}

/** Throws DivergedError if an iteration has a row without a finite solution. */
function requireSolved(
  number: number,
  results: StepResults,
  {
    data,
    slices,
    params,
    unit,
  }: {
    readonly data: AlsData;
    /** The row ranges of the tasks, by stage and part. */
    readonly slices: Readonly<Record<string, readonly (readonly RowRange[])[]>>;
    readonly params: SizedAlsParams;
    readonly unit: number;
  },
): void {
  const blocks = { users: data.byUser, items: data.byItem };
  for (const side of ['items', 'users'] as const) {
    const bad = badRow(solvedValues(results, side), slices[`update-${side}`], blocks[side].rows);
    if (bad === undefined) continue;
    const id = keyText(data[side], bad);
    const count = lengthOfRow(blocks[side], bad);
    const largest = largestOf(blocks[side], bad);
    throw new DivergedError(
      `iteration ${number}, side ${side}: the normal equations of ${side === 'users' ? 'user' : 'item'} ${id} (${count} ratings) are singular or not finite`,
      {
        phase: 'train',
        iteration: number,
        side,
        id,
        advice: unsolvedAdvice({ params, unit, count, largest }),
      },
    );
  }
}

/** Values of the tasks that solve the rows of a side, by part. */
function solvedValues(results: StepResults, side: 'users' | 'items'): ValuesOf<'update'>[][] {
  return (['update', 'update-implicit', 'solve-equations', 'end-gradients'] as const).flatMap(
    (kernel) => results.byPart(`update-${side}`, kernel, 'factors') as ValuesOf<'update'>[][],
  );
}

/**
 * The index of the first row, over all parts of a side, whose solution is not finite. A task reports the
 * row's index within its part; a part's values have the order of its slices (row ranges).
 */
function badRow(
  values: readonly (readonly ValuesOf<'update'>[])[],
  slices: readonly (readonly RowRange[])[],
  rows: number,
): number | undefined {
  let first = 0;
  for (const [part, ranges] of slices.entries()) {
    const bad = values[part]?.find((value) => value.badRow >= 0);
    if (bad !== undefined) return Math.min(first + bad.badRow, rows - 1);
    first += ranges.at(-1)?.to ?? 0;
  }
  return undefined;
}

/** The largest |r| of a row; 0 if its ratings are in a file, or on devices alone. */
function largestOf({ parts }: Ratings, row: number): number {
  const part = parts.find(({ from, rows }) => row < from + rows);
  const blocks = part?.blocks ?? [];
  return blocks.reduce((most, { block }) => Math.max(most, largestOfRow(block, row - part!.from)), 0);
}

/**
 * Computes the loss of implicit data from the objective of the users, which is a result of solving them. The
 * objective covers all pairs, with or without a rating, and the users' penalty. `targets`: the constant that
 * it lacks, see positiveTargets. Returns undefined if cancellation leaves too few digits.
 */
function implicitErrorsOfSolve(
  measured: StepResults,
  objective: number,
  targets: number,
): TrainingErrors | undefined {
  const loss =
    targets +
    objective +
    valuesOfStage(measured, implicitStages.items, 'weighted-norm').reduce(
      (sum, values) => sum + values.sum,
      0,
    );
  return loss * MOST_CANCELLED > targets ? { loss, fromSolve: true } : undefined;
}

/**
 * The loss of implicit data, computed in float64: Σ over all pairs of c (p - x_uᵀθ_v)² + Σ shift_u ‖x_u‖² + Σ
 * shift_v ‖θ_v‖², where c is the weight of a pair, and p is 1 for a positive rating, else 0. Σ (x_uᵀθ_v)²
 * over all pairs is the trace of the product of both Gram matrices. Each Gram matrix contains the factor w₀,
 * the weight of pairs without a rating, so the trace is divided by w₀. `prefix`: prefix of the names of the
 * data sets.
 */
function implicitErrors(measured: StepResults, prefix: string, params: SizedAlsParams): TrainingErrors {
  const [users, items] = (['users', 'items'] as const).map(
    (side) => measured.partitions(`${prefix}/${implicitNames(side).gram}`)[0].columns.values as Float32Array,
  );
  const { rank } = params;
  let trace = 0;
  for (let k = 0; k < rank * rank; k++) trace += users[k] * items[k];
  const observed = valuesOfStage(measured, implicitStages.error, 'implicit-error').reduce(
    (sum, values) => sum + values.sum,
    0,
  );
  const penalty = (['users', 'items'] as const).reduce(
    (all, side) =>
      valuesOfStage(measured, implicitStages[side], 'weighted-norm').reduce(
        (sum, values) => sum + values.sum,
        all,
      ),
    0,
  );
  return { loss: trace / unobservedWeightOf(params) + observed + penalty };
}
