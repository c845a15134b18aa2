import { DivergedError } from '../../engine/errors.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { RowParts } from '../../engine/row-parts.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { RatingBlock } from '../ratings/rating-block.ts';
import { leaveRatings } from '../ratings/leave-ratings.ts';
import { partsOf } from '../training/joined-parts.ts';
import { joinedRows, type ModelRows } from '../training/model-rows.ts';
import { type SideNorms, trainingErrors } from '../training/loss.ts';
import { type Checkpoints, checkpointsOf, type Matrices, partsOfMatrix } from '../training/host-copy.ts';
import { MOST_RESTARTS } from '../training/course.ts';
import { runLoop } from '../training/loop.ts';
import { ofCourse } from '../training/planned-measures.ts';
import type { LoopResult, Training } from '../training/training.ts';
import { StoppingRule } from '../training/stopping-rule.ts';
import { validationMetric } from '../evaluation/ranking/validation-metric.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-users.ts';
import { rankingMetricOf } from '../params/common.ts';
import { bindSgd } from './bind.ts';
import { pairsByPosition } from './data/by-position.ts';
import type { SgdData } from './data/data.ts';
import { fromModelSide, type ModelFactors, modelSides, type TrainedFactors } from './factors.ts';
import { layOut } from './data/layout.ts';
import { LearningRate, type RateCourse } from './learning-rate.ts';
import { type SgdParams, shrinks, steppedLambdas, sgdFeatures } from './params.ts';
import { scheduleOf } from './plan.ts';
import { bandsLeave } from './schedules/blocks-schedule.ts';

export interface SgdInput {
  readonly data: SgdData;
  /** Known pairs of the validation set, by loadSgdTest. */
  readonly test?: RatingBlock;
  /** Factors to go on from, by position; without them training starts at random. */
  readonly start?: ModelFactors;
}

export interface SgdResult extends Omit<LoopResult<unknown>, 'factors'> {
  readonly sides: ModelRows;
  /** The plan as it was run. */
  readonly plan: PhysicalPlan;
}

export interface TrainSgdOptions {
  /** Devices of the plan that hold factors. */
  readonly devices: readonly DeviceInfo[];
  readonly plan: (devices: readonly DeviceInfo[]) => PhysicalPlan;
  /** See LoopOptions. */
  readonly copySeconds?: number;
  /** Users that a ranking metric is measured over, at most. */
  readonly rankUsers?: number | undefined;
  /** See LoopOptions. */
  readonly checkpoints?: Checkpoints<Matrices> | undefined;
  /** See LoopOptions. */
  readonly fetched?: (() => void) | undefined;
}

/**
 * An epoch has diverged when its loss is a tenth above the one before, and by a thousandth of σ² Nz; smaller
 * rises are the noise of SGD.
 */
const DIVERGED = { relative: 1.1, absolute: 1e-3 } as const;

/**
 * Matrix factorization by parallel stochastic gradient descent (cuMF_SGD). Each epoch steps a copy of the
 * factors of the one before; one that diverges is discarded and run again at half the rate, three times at
 * most. Where one column has most of the ratings, the loss sometimes rises by that much for any order of
 * blocks. Throws DivergedError when the fourth attempt diverges too, and DeviceLostError when the last device
 * is lost before any factors were copied from it.
 *
 */
export async function trainSgd(
  { data, test, start }: SgdInput,
  params: SgdParams,
  { devices, plan, copySeconds, rankUsers = RANKED_USERS, checkpoints, fetched }: TrainSgdOptions,
  ctx: ExecutionContext,
): Promise<SgdResult> {
  const rate = new LearningRate(params);
  const metric = rankingMetricOf(params);
  const rank =
    metric === undefined || test === undefined
      ? undefined
      : validationMetric(
          metric,
          await pairsByPosition(data, test, ctx),
          { rankUsers, seed: params.seed },
          ctx,
        );
  let run = plan(devices);
  let steps: BoundPlan | undefined;
  const { factors, ...result } = await runLoop<TrainedFactors>(
    {
      called: 'epoch',
      maxIter: params.maxIter,
      devices,
      rule: new StoppingRule(params, test),
      copySeconds,
      fetched,
      checkpoints: checkpointsOf(checkpoints, toMatrices, (matrices) =>
        fromMatrices(matrices, sgdFeatures(params)),
      ),
      measure: rank && ((factors, held) => rank(joinedRows(modelSides(factors, data, params)), held)),
      prepare: async (left, from) => {
        rate.rewind(from?.course as RateCourse | undefined);
        const planned = left === devices ? run : plan(left);
        // The workers lay the ratings out while the calling thread fills a model's factors in.
        const laying = layOut(data, test, scheduleOf(planned), params.seed, ctx);
        const given = from?.factors ?? (start && trainedFrom(start, data, params));
        const { plan: bound, ...made } = bindSgd(
          planned,
          params,
          data,
          await laying,
          given,
          1 + (from?.iteration ?? 0),
        );
        [run, steps] = [bound, made.bound];
        return {
          ...sgdTraining(
            data,
            params,
            rate,
            start !== undefined,
            made.bound.name,
            widths(bound, made.bound.bands),
          ),
          ...made,
          given: [...made.given],
          keep: bound.keep,
          settled: (held) => leaveBands(data, bound, made.bound, held),
        };
      },
    },
    ctx,
  );
  return {
    ...result,
    sides: modelSides(factors, data, params),
    plan: steps ? ofCourse(run, steps, result) : run,
  };
}

/**
 * Bands that stay on the only device for the whole run leave host memory: where that device is lost the run
 * ends with the last copy, so nothing reads them again.
 */
async function leaveBands(
  { ratings }: SgdData,
  plan: PhysicalPlan,
  { given }: BoundPlan,
  ctx: ExecutionContext,
): Promise<void> {
  if (ratings.parts.length > 1 && bandsLeave(scheduleOf(plan), plan.devices[0]))
    await leaveRatings(ratings, given.blocks, plan.devices[0].place, ctx);
}

function toMatrices({ rows, columns, rowSums, columnSums }: TrainedFactors): Matrices {
  const arrays = (one: RowParts) => one.parts.map(({ values }) => values);
  return {
    rows: arrays(rows),
    columns: arrays(columns),
    ...(rowSums && columnSums && { 'row-sums': arrays(rowSums), 'column-sums': arrays(columnSums) }),
  };
}

function fromMatrices(
  { rows, columns, 'row-sums': rowSums, 'column-sums': columnSums }: Matrices,
  features: number,
): TrainedFactors {
  const side = (matrix: Matrices[string], width: number): RowParts => {
    const parts = partsOfMatrix(matrix).map((values) => ({ values }));
    return { rows: parts.reduce((sum, { values }) => sum + values.length / width, 0), columns: width, parts };
  };
  return {
    rows: side(rows, features),
    columns: side(columns, features),
    ...(rowSums && columnSums && { rowSums: side(rowSums, 1), columnSums: side(columnSums, 1) }),
  };
}

/** Numbers of each matrix of a checkpoint. */
export function sgdMatrices(
  { ratings, columnOffsets }: SgdData,
  params: SgdParams,
): Readonly<Record<string, number>> {
  const [rows, columns] = [ratings.rows, columnOffsets.length - 1];
  const features = sgdFeatures(params);
  return {
    rows: rows * features,
    columns: columns * features,
    ...(params.rate === 'adagrad' ? { 'row-sums': rows, 'column-sums': columns } : {}),
  };
}

/** The columns of each segment, where columns lie in segments that are as wide as the widest. */
function widths(
  plan: PhysicalPlan,
  bands: { readonly columns: readonly RowRange[] } | undefined,
): readonly number[] | undefined {
  return scheduleOf(plan).deviceBlocks && bands?.columns.map(({ from, to }) => to - from);
}

function trainedFrom(
  { userFactors, itemFactors }: ModelFactors,
  data: SgdData,
  { rank, biases }: SgdParams,
): TrainedFactors {
  const side = (name: 'rows' | 'columns'): RowParts =>
    fromModelSide(
      data[name].name === 'users' ? userFactors : itemFactors,
      data[name],
      name === 'rows',
      data,
      rank,
      biases,
    );
  return { rows: side('rows'), columns: side('columns') };
}

/** The functions of SGD that the training loop calls. */
function sgdTraining(
  data: SgdData,
  params: SgdParams,
  rate: LearningRate,
  continued: boolean,
  name: string,
  segments: readonly number[] | undefined,
): Omit<Training<TrainedFactors>, 'bound' | 'keep' | 'given'> {
  const {
    ratings: { ratings },
    scale,
    squares,
  } = data;
  const lambdas = steppedLambdas(params, scale.deviation);
  const noise = DIVERGED.absolute * scale.deviation ** 2 * ratings;
  const features = sgdFeatures(params);
  // A feature that is 1 counts once for each rating.
  const ones = params.biases ? ratings : 0;
  const term = (side: 'users' | 'items', { weighted, plain }: SideNorms) =>
    (lambdas[side] === 0 ? 0 : lambdas[side] * (weighted - ones)) + (shrinks(params, side) ? plain : 0);
  return {
    // Σ r² is the loss of factors that are all 0; a good start and a good first epoch have less, unless all
    // ratings are equal.
    startLoss: continued || scale.alike ? 'measure' : scale.deviation ** 2 * squares,
    round: (epoch) => ({ rate: rate.of(epoch), epoch, next: epoch + 1 }),
    check: () => {},
    errors: (measured) =>
      trainingErrors(
        measured,
        (norms) =>
          term(data.rows.name, norms[data.rows.name]) + term(data.columns.name, norms[data.columns.name]),
        scale.deviation,
      ),
    diverged: (loss, before) => !(loss <= DIVERGED.relative * before + noise),
    divergence: (epoch, loss, before) =>
      new DivergedError(
        `epoch ${epoch}: the loss is ${loss}, after ${before} before it; ${MOST_RESTARTS} runs at halved learning rates, the last of them ${rate.of(epoch)}, did not lower it`,
        {
          phase: 'train',
          iteration: epoch,
          advice: `Lower learningRate (α), which is ${params.learningRate}, or raise regParam (λ), which is ${params.regParam}`,
        },
      ),
    slower: (epoch) => {
      rate.halve();
      return rate.of(epoch);
    },
    accepted: (loss) => rate.see(loss),
    course: () => rate.course,
    factors: (results) => {
      const side = (set: string, columns: number, ofSegments: boolean): RowParts => {
        const parts = partsOf(results, `${name}/${set}`).map((values, part) => ({
          values: values.subarray(0, ofSegments && segments ? segments[part] * columns : undefined),
        }));
        return { rows: parts.reduce((sum, { values }) => sum + values.length / columns, 0), columns, parts };
      };
      const factors = { rows: side('rows', features, false), columns: side('columns', features, true) };
      return params.rate === 'adagrad'
        ? { ...factors, rowSums: side('row-sums', 1, false), columnSums: side('column-sums', 1, true) }
        : factors;
    },
  };
}
