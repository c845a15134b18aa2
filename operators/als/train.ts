import { DivergedError } from '../../engine/errors.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { RowPart } from '../../engine/row-parts.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import { placeColumns } from '../ratings/sorting/columns-of-block.ts';
import { inMemory } from '../ratings/parts-in-files.ts';
import { lengthOfRow } from '../ratings/ratings.ts';
import { leaveRatings } from '../ratings/leave-ratings.ts';
import type { ValuesOf } from '../tasks/tasks.ts';
import { joined, partsOf } from '../training/joined-parts.ts';
import { joinedRows, type ModelRows } from '../training/model-rows.ts';
import {
  normsOfSides,
  type SideNorms,
  testErrors,
  type TrainingErrors,
  trainingErrors,
} from '../training/loss.ts';
import { type Checkpoints, checkpointsOf, type Matrices, partsOfMatrix } from '../training/host-copy.ts';
import { runLoop } from '../training/loop.ts';
import { ofCourse } from '../training/planned-measures.ts';
import type { LoopResult, Training } from '../training/training.ts';
import { StoppingRule } from '../training/stopping-rule.ts';
import {
  validationMetric,
  type ValidationRanking,
  validationRanking,
} from '../evaluation/ranking/validation-metric.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-users.ts';
import { rankingMetricOf } from '../params/common.ts';
import { forSides } from '../params/table.ts';
import { sortedRatingFacts } from '../evaluation/rating-facts.ts';
import { biasPenalty, modelRows } from './biases.ts';
import type { AlsData, AlsStart, TrainedFactors, TrainedSide } from './bind/als-data.ts';
import { bindAls } from './bind/bind-als.ts';
import { implicitErrors, implicitErrorsOfSolve } from './implicit/loss.ts';
import { TEST_PLACES } from './implicit/stages.ts';
import { implicitWeights, positiveTargets, sortedRowShifts } from './implicit/weights.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';
import { isExact } from './exact-solver.ts';
import { placeRows, staysAt } from './place-ratings.ts';
import { sides } from './plan/grid.ts';
import { stepsOf } from './solver-choice.ts';
import type { RatingLevel } from './rating-unit.ts';
import { itemTotals, solvedErrors, solvedObjective, squaresBeside } from './solved-loss.ts';

export interface AlsResult extends Omit<LoopResult<unknown>, 'factors'> {
  /** X (m x f) and Θ (n x f); with biases both have two more features, see modelRows. */
  readonly sides: ModelRows;
  /** The plan as it was run. */
  readonly plan: PhysicalPlan;
  /** Standard deviation of the ratings, where regOffset is in units of it. */
  readonly ratingDeviation?: number;
  /** The factors in the unit of training and the biases apart: the start of a training that goes on. */
  readonly raw: () => AlsStart;
}

export interface TrainAlsOptions {
  /** Devices of the plan that hold factors. */
  readonly devices: readonly DeviceInfo[];
  readonly plan: (devices: readonly DeviceInfo[]) => PhysicalPlan;
  /**
   * The unit of the given ratings, default 1: see ratingUnit. λ is that of the ratings themselves, as the
   * model and the errors are.
   */
  readonly unit?: number;
  /** The level of the given ratings, where it is known. */
  readonly level?: RatingLevel | undefined;
  /** Factors to begin with, in place of drawn ones. */
  readonly start?: AlsStart;
  /** See LoopOptions. */
  readonly copySeconds?: number;
  /** Users that a ranking metric is measured over, at most. */
  readonly rankUsers?: number | undefined;
  /** See LoopOptions. */
  readonly measuresEnds?: boolean | undefined;
  /** See LoopOptions. */
  readonly checkpoints?: Checkpoints<Matrices> | undefined;
  /** See LoopOptions. */
  readonly fetched?: (() => void) | undefined;
}

/**
 * Explicit ALS with weighted-λ regularization (cuMF, section 2, eq. 1-2), or implicit ALS (cuMF_ALS, section
 * V-F): each iteration solves all items from the users, then all users from the items. Throws DivergedError,
 * and DeviceLostError when the last device is lost before any factors were copied from it.
 */
export async function trainAls(
  ratings: AlsData,
  params: SizedAlsParams,
  {
    devices,
    plan,
    unit = 1,
    level: known,
    start,
    copySeconds,
    rankUsers = RANKED_USERS,
    measuresEnds,
    checkpoints,
    fetched,
  }: TrainAlsOptions,
  ctx: ExecutionContext,
): Promise<AlsResult> {
  const { byUser, byItem } = ratings;
  const weighted = params.implicitPrefs
    ? {
        ...ratings,
        shifts: {
          users: await sortedRowShifts(byUser, byItem.rows, params, ctx),
          items: await sortedRowShifts(byItem, byUser.rows, params, ctx),
        },
      }
    : ratings;
  const level = params.implicitPrefs
    ? { mean: 0, deviation: 0, columns: new Float32Array(0) }
    : (known ?? (await sortedRatingFacts(ratings, ctx)));
  const targets = params.implicitPrefs ? await positiveTargets(byUser, implicitWeights(params), ctx) : 0;
  const mean = params.biases ? level.mean : 0;
  const offset = params.regOffset * level.deviation;
  let bound = plan(devices);
  let run: BoundPlan | undefined;
  const sidesOf = (factors: TrainedFactors) =>
    modelRows(
      factors,
      { users: byUser.rows, items: byItem.rows },
      params.rank,
      params.biases ? mean * unit : undefined,
      unit,
    );
  const metric = rankingMetricOf(params);
  const pairs =
    metric === undefined || ratings.test === undefined
      ? undefined
      : {
          users: ratings.users,
          items: ratings.items,
          test: ratings.test,
          train: await inMemory(byUser, ctx),
        };
  // Rankings of implicit data are steps of the plan; biases are no factors on a device, and are folded in on
  // the host.
  const ranking =
    metric !== undefined && pairs !== undefined && params.implicitPrefs
      ? validationRanking(metric, pairs, { rankUsers, seed: params.seed }, ctx)
      : undefined;
  const rank =
    metric !== undefined && pairs !== undefined && ranking === undefined
      ? validationMetric(metric, pairs, { rankUsers, seed: params.seed }, ctx)
      : undefined;
  const data: AlsData = {
    ...weighted,
    ...(params.biases && !params.implicitPrefs ? { totals: itemTotals(byItem, level) } : {}),
    test: ranking?.positives ?? ratings.test,
  };
  const { factors, ...result } = await runLoop<TrainedFactors>(
    {
      called: 'iteration',
      maxIter: params.maxIter,
      devices,
      rule: new StoppingRule(params, ratings.test),
      copySeconds,
      measuresEnds,
      fetched,
      checkpoints: checkpointsOf(checkpoints, toMatrices, fromMatrices),
      measure: rank && ((factors, held) => rank(joinedRows(sidesOf(factors)), held)),
      prepare: async (left, from) => {
        const {
          plan: made,
          bound: steps,
          columnCuts,
          given,
        } = bindAls(
          left === devices ? bound : plan(left),
          data,
          { biases: params.biases, mean, offset, unit },
          from ? startOf(from.factors) : start,
        );
        for (const cut of columnCuts) await placeColumns(cut, { stage: 'cut-columns', local: true }, ctx);
        [bound, run] = [made, steps];
        return {
          ...alsTraining(
            data,
            params,
            {
              offset,
              unit,
              level,
              targets,
              ranking,
              tells: steps.phases.measure.some(({ brief }) => brief !== undefined),
            },
            steps.name,
            steps.slices,
          ),
          bound: steps,
          keep: made.keep,
          given: [...given],
          starting: (held) => leaveRatingsAlone(data, steps, left, held),
        };
      },
    },
    ctx,
  );
  return {
    ...result,
    sides: sidesOf(factors),
    raw: () => startOf(factors),
    plan: run ? ofCourse(bound, run, result) : bound,
    ...(params.regOffset === 0 ? {} : { ratingDeviation: (unit * offset) / params.regOffset }),
  };
}

/**
 * Ratings in parts that stay on the only device for the whole run leave host memory, once they and the lists
 * of their rows have been made there: where that device is lost the run ends with the last copy, so nothing
 * reads them again. The start's steps have given them to the device.
 *
 */
async function leaveRatingsAlone(
  { byUser, byItem }: AlsData,
  bound: BoundPlan,
  [{ place, ownMemory }, ...others]: readonly DeviceInfo[],
  ctx: ExecutionContext,
): Promise<void> {
  if (!ownMemory || others.length > 0 || !staysAt(bound, place, 'in parts')) return;
  if (byUser.parts.length === 1 && byItem.parts.length === 1) return;
  await Promise.all(sides.map((side) => placeRows(bound, side, place, ctx)));
  await leaveRatings(byUser, bound.given['ratings-by-user'], place, ctx);
  await leaveRatings(byItem, bound.given['ratings-by-item'], place, ctx);
}

function toMatrices(factors: TrainedFactors): Matrices {
  const { users, items } = startOf(factors);
  // A device may hand out its own memory of a bias.
  return {
    users: users.values,
    items: items.values,
    ...(users.bias &&
      items.bias && {
        'users-bias': Float32Array.from(users.bias),
        'items-bias': Float32Array.from(items.bias),
      }),
  };
}

function fromMatrices({
  users,
  items,
  'users-bias': usersBias,
  'items-bias': itemsBias,
}: Matrices): TrainedFactors {
  const part = (matrix: Matrices[string], bias?: Matrices[string]): RowPart => ({
    values: joined(partsOfMatrix(matrix)),
    ...(bias && { own: joined(partsOfMatrix(bias)) }),
  });
  return { users: [part(users, usersBias)], items: [part(items, itemsBias)] };
}

/** The sides joined. */
function startOf({ users, items }: TrainedFactors): AlsStart {
  const side = (parts: readonly RowPart[]): TrainedSide => {
    const biases = parts.flatMap(({ own }) => (own ? [own] : []));
    return {
      values: joined(parts.map(({ values }) => values)),
      ...(biases.length > 0 && { bias: joined(biases) }),
    };
  };
  return { users: side(users), items: side(items) };
}

/** Numbers of each matrix of a checkpoint. */
export function alsMatrices(
  users: number,
  items: number,
  { rank, biases }: SizedAlsParams,
): Readonly<Record<string, number>> {
  return {
    users: users * rank,
    items: items * rank,
    ...(biases ? { 'users-bias': users, 'items-bias': items } : {}),
  };
}

/** Facts that the loss needs besides the measures. */
interface LossFacts {
  readonly offset: number;
  readonly unit: number;
  readonly level: RatingLevel;
  /** Of implicit data: see positiveTargets. */
  readonly targets: number;
  readonly ranking: ValidationRanking | undefined;
  /** The solve of the users tells the loss of their rows. */
  readonly tells: boolean;
}

/** The functions of ALS that the training loop calls. */
function alsTraining(
  data: AlsData,
  params: SizedAlsParams,
  { offset, unit, level, targets, ranking, tells }: LossFacts,
  name: string,
  slices: Readonly<Record<string, readonly (readonly RowRange[])[]>>,
): Omit<Training<TrainedFactors>, 'bound' | 'keep' | 'given'> {
  const { regParam, biases, solver } = params;
  const damping = forSides(params.biasDamping);
  const blocks = { users: data.byUser, items: data.byItem };
  const side = (results: StepResults, of: 'users' | 'items'): RowPart[] => {
    const own = biases ? partsOf(results, `${name}/${of}-bias`) : [];
    return partsOf(results, `${name}/${of}`).map((values, part) => ({
      values,
      ...(biases && { own: own[part] }),
    }));
  };
  const ofRanking = (measured: StepResults) =>
    ranking && { testMetrics: ranking.values(placesOf(measured, name)) };
  const penaltyOf = (norms: SideNorms, side: 'users' | 'items') =>
    (regParam / unit) * norms.weighted + offset * norms.plain + biasPenalty(norms, regParam, damping[side]);
  const errorsOfRound = (measured: StepResults, round: StepResults): TrainingErrors | undefined => {
    const objective = solvedObjective(round);
    if (params.implicitPrefs) {
      const told = implicitErrorsOfSolve(measured, objective, targets);
      return told && { ...told, ...ofRanking(measured) };
    }
    const { users, items } = normsOfSides(measured);
    const squares = squaresBeside(data.byItem.ratings, level, biases ? items : undefined);
    return solvedErrors(
      objective,
      squares,
      { users: penaltyOf(users, 'users'), items: penaltyOf(items, 'items') },
      data.byUser.ratings,
      unit,
      testErrors(measured, unit),
    );
  };
  return {
    startLoss: undefined,
    ...(tells ? { errorsOfRound } : {}),
    round: (number) => ({
      cgSteps: stepsOf(
        params,
        { users: data.byUser.rows, items: data.byItem.rows, ratings: data.byUser.ratings },
        number,
      ),
    }),
    check: (number, results) => {
      for (const solved of ['items', 'users'] as const) {
        const bad = badRow(solvedValues(results, solved), slices[`update-${solved}`], blocks[solved].rows);
        if (bad === undefined) continue;
        throw new DivergedError(
          `iteration ${number}, side ${solved}: the normal equations of ${solved === 'users' ? 'user' : 'item'} ${keyText(data[solved], bad)} (${lengthOfRow(blocks[solved], bad)} ratings) are singular or not finite`,
          {
            phase: 'train',
            iteration: number,
            side: solved,
            id: keyText(data[solved], bad),
            advice: `Raise regParam (λ), which is ${regParam}, or scale the ratings down`,
          },
        );
      }
    },
    errors: (measured) => {
      if (params.implicitPrefs) return { ...implicitErrors(measured, name, params), ...ofRanking(measured) };
      return trainingErrors(
        measured,
        ({ users, items }) => penaltyOf(users, 'users') + penaltyOf(items, 'items'),
        unit,
      );
    },
    // A loss of implicit data is below 0 where pairs are repeated: each of them asks for a whole weight, and
    // the pair has one.
    diverged: (loss, first) => !Number.isFinite(loss) || loss > first + 9 * Math.abs(first),
    divergence: (number, loss, first) =>
      new DivergedError(
        `iteration ${number}, side users: the loss is ${loss}, after ${first} in the first iteration`,
        {
          phase: 'train',
          iteration: number,
          side: 'users',
          advice: `Raise regParam (λ), which is ${regParam}${isExact(solver) ? '' : ', or use solver cholesky'}`,
        },
      ),
    factors: (results, last) => {
      const factors = { users: side(results, 'users'), items: side(results, 'items') };
      // A later round may write the memory of parts again.
      return last ? factors : fromMatrices(toMatrices(factors));
    },
  };
}

/** The values of the tasks that solve the rows of a side, by part. */
function solvedValues(results: StepResults, side: 'users' | 'items'): ValuesOf<'update'>[][] {
  return (['update', 'update-implicit', 'solve-equations', 'end-gradients'] as const).flatMap(
    (kernel) => results.byPart(`update-${side}`, kernel, 'factors') as ValuesOf<'update'>[][],
  );
}

/**
 * The places of the validation pairs; a device that slices its passes gives their bits in a vector of floats.
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

/**
 * The first row, over all parts, whose solution is not finite. Tasks give rows of their part, in the order of
 * slices.
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
