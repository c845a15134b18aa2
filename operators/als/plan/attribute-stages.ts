import { formatBytes } from '../../../engine/format.ts';
import { HOST } from '../../../engine/plan/place.ts';
import type { DataUses, RowRange, Slice, Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import { taskStage } from '../../planner/load-stages.ts';
import { blockBytes, factorBytes } from '../../planner/sizes.ts';
import type { RatingBlock } from '../../ratings/ratings.ts';
import { balancedRanges, rangesOfSize, taskCount } from '../../ratings/row-ranges.ts';
import { workColumns } from '../../tasks/attribute-tasks.ts';
import { implicitNames } from '../implicit/stages.ts';
import {
  type AlsDataSet,
  type AlsProblem,
  allPlaces,
  type GivenRole,
  partPlaces,
  regularizationOf,
  type Side,
  sideNames,
} from './problem.ts';

/**
 * Steps of conjugate gradients for the coefficients of a half-iteration. They start at the coefficients of the
 * last one.
 */
const STEPS = 15;

/** Columns of coefficients that one task fits. */
const FITTED_COLUMNS = 8;

/** What is predicted from the attributes of a side, with the names of its data sets and stages. */
interface Target {
  /** The rows' factors or biases, and their number of columns. */
  readonly values: string;
  readonly columns: number;
  readonly layout: 'factors' | 'bias';
  /** The same of all rows, at the host: the values themselves if these are in one part on one device. */
  readonly whole: string;
  readonly coefficients: string;
  readonly prior: string;
  readonly work: string;
  readonly fit: string;
  readonly predict: string;
  readonly norm: string;
}

/** The factors and biases of a side that has attributes; empty for a side without. */
export function targetsOf(
  problem: Pick<AlsProblem, 'profile' | 'params' | 'grid' | 'places'>,
  side: Side,
): Target[] {
  if (problem.profile.attributes?.[side] === undefined) return [];
  const { factors, bias } = sideNames(side, problem);
  const target = (values: string, columns: number, layout: Target['layout']): Target => ({
    values,
    columns,
    layout,
    whole: isInParts(problem, side) ? `${values}-at-host` : values,
    coefficients: `${values}-coefficients`,
    prior: `${values}-prior`,
    work: `${values}-coefficients-work`,
    fit: `coefficients-${values}`,
    predict: `prior-${values}`,
    norm: `penalty-coefficients-${values}`,
  });
  return [target(factors, problem.params.rank, 'factors'), ...(bias ? [target(bias, 1, 'bias')] : [])];
}

/** True if a side is in several parts or on several devices, so that its rows are gathered to be fitted. */
function isInParts(problem: Parameters<typeof targetsOf>[0], side: Side): boolean {
  const { whole, factors } = sideNames(side, problem);
  return whole !== factors;
}

/** The data set with the weights of all rows: their shifts, or of explicit data their lengths. */
function weightsName(problem: AlsProblem, side: Side): string {
  const names = sideNames(side, problem);
  const own = problem.params.implicitPrefs ? implicitNames(side).shifts : names.ratings;
  return isInParts(problem, side) ? `${side}-weights` : own;
}

/** The data sets of a side's attributes that exist before the first step. */
export function givenAttributes(problem: AlsProblem, side: Side): string[] {
  if (problem.profile.attributes?.[side] === undefined) return [];
  return [attributesName(side), ...(isInParts(problem, side) ? [weightsName(problem, side)] : [])];
}

/** The data set of the attributes of a side. */
function attributesName(side: Side): string {
  return `${side}-attributes`;
}

/**
 * Data sets of a side's attributes: F, the coefficients, the priors of the rows, and memory for fitting; if the
 * side is in parts, also all of its rows and their weights.
 */
export function attributeSets(problem: AlsProblem, side: Side, rows: readonly number[]): AlsDataSet[] {
  const sizes = problem.profile.attributes?.[side];
  if (sizes === undefined) return [];
  const { place } = problem.host;
  const at = allPlaces(problem, side);
  const features = [{ rows: sizes.features, at: [place] }];
  const all = problem.rows[side];
  const given = (name: string, role: GivenRole, layout: string, bytes: number): AlsDataSet => {
    const parts = [{ rows: all, bytes, at: [HOST, place] }];
    return { name, role, side, layout, given: true, parts };
  };
  const inParts = isInParts(problem, side);
  const layoutOfWeights = problem.params.implicitPrefs ? 'row-shifts' : 'rating-block';
  return [
    given(attributesName(side), 'attributes', 'rating-block', blockBytes(all, sizes.entries)),
    ...(inParts ? [given(weightsName(problem, side), 'weights', layoutOfWeights, 4 * (all + 1))] : []),
    ...targetsOf(problem, side).flatMap(({ columns, layout, ...names }): AlsDataSet[] => {
      const set = { side, layout, columns, derived: true };
      const whole = [{ rows: all, at: [place] }];
      const fitted = { side, layout: 'factors', parts: features };
      return [
        ...(inParts ? [{ ...set, name: names.whole, role: 'whole' as const, parts: whole }] : []),
        { ...fitted, name: names.coefficients, role: 'coefficients', columns },
        { ...set, name: names.prior, role: 'prior', parts: rows.map((own, j) => ({ rows: own, at: at[j] })) },
        {
          ...fitted,
          name: names.work,
          role: 'work',
          columns: workColumns(columns),
          derived: true,
          contents: 'any',
        },
      ];
    }),
  ];
}

/** Inputs of tasks that solve or measure the rows of a side: what its attributes predict. */
export function priorUses(problem: AlsProblem, side: Side): DataUses {
  const [factors, bias] = targetsOf(problem, side);
  return { ...(factors && { prior: factors.prior }), ...(bias && { priorBias: bias.prior }) };
}

/** Stages after a side was solved: fit its coefficients, and predict its rows for the next iteration. */
export function coefficientStages(problem: AlsProblem, side: Side): Stage[] {
  const targets = targetsOf(problem, side);
  if (targets.length === 0) return [];
  const at = [problem.host.place];
  const works = targets.map(({ work }) => work);
  const [data, to] = [targets.map(({ values }) => values), targets.map(({ whole }) => whole)];
  const inParts = isInParts(problem, side);
  const columns = targets.reduce((sum, target) => sum + target.columns, 0);
  const gather: Stage = {
    name: `gather-fits-${side}`,
    at: partPlaces(problem, side),
    work: { kind: 'exchange', how: 'all-gather', data, to },
    ...sent(problem, side, columns, 'down'),
  };
  return [
    ...(inParts ? [gather] : []),
    { name: `allocate-fits-${side}`, at, work: { kind: 'allocate', data: works } },
    ...targets.map((target) => fitStage(problem, side, target)),
    { name: `free-fits-${side}`, at, work: { kind: 'free', data: [...works, ...(inParts ? to : [])] } },
    ...priorStages(problem, side),
  ];
}

/** Stages that predict the rows of a side by its coefficients. */
export function priorStages(problem: AlsProblem, side: Side): Stage[] {
  return targetsOf(problem, side).map((target) => predictStage(problem, side, target));
}

function fitStage(problem: AlsProblem, side: Side, target: Target): Stage {
  const { params, host, rows, profile } = problem;
  const { entries = 0 } = profile.attributes?.[side] ?? {};
  const { coefficients, columns, layout, work, whole, fit } = target;
  const task: TaskPlan = {
    kernel: 'fit-coefficients',
    uses: {
      attributes: attributesName(side),
      [params.implicitPrefs ? 'shifts' : 'block']: weightsName(problem, side),
      [layout]: whole,
      previous: { set: coefficients, version: 'old' },
      coefficients,
      work,
    },
    params: {
      ...(params.implicitPrefs ? { lambda: 0 } : regularizationOf(params, side)),
      rank: columns,
      ridge: params.regParam * params.attributeRegParam,
      steps: STEPS,
    },
  };
  return taskStage(fit, [host.place], task, {
    kernel: `fit-coefficients cg(${STEPS})`,
    tasks: coefficientSlices(columns).length,
    bytesRead: blockBytes(rows[side], entries),
    flops: 4 * (STEPS + 1) * entries * columns,
    ...(isInParts(problem, side) ? {} : sent(problem, side, columns, 'down')),
  });
}

function predictStage(
  problem: AlsProblem,
  side: Side,
  { coefficients, prior, columns, predict }: Target,
): Stage {
  const { rows, profile } = problem;
  const { entries = 0 } = profile.attributes?.[side] ?? {};
  const uses = { attributes: attributesName(side), coefficients, product: prior };
  return taskStage(
    predict,
    partPlaces(problem, side).map(() => problem.host.place),
    { kernel: 'multiply-attributes', uses, params: { rank: columns } },
    {
      tasks: Math.min(rows[side], taskCount(entries)),
      bytesRead: blockBytes(rows[side], entries),
      flops: 2 * entries * columns,
      ...sent(problem, side, columns, 'up'),
    },
  );
}

/** The rows that a device with its own memory sends to the host, or gets from it. */
function sent(
  { device, rows }: AlsProblem,
  side: Side,
  columns: number,
  way: string,
): Pick<Stage, 'exchange'> {
  return device.ownMemory ? { exchange: `${formatBytes(factorBytes(rows[side], columns, 1))} ${way}` } : {};
}

/** Stages that measure the squared norms of a side's coefficients, for their penalty μ‖A‖². */
export function coefficientNorms(problem: AlsProblem, side: Side): Stage[] {
  return targetsOf(problem, side).map(({ coefficients, columns, norm }) =>
    taskStage(norm, [problem.host.place], {
      kernel: 'weighted-norm',
      uses: { factors: coefficients },
      params: { rank: columns },
    }),
  );
}

function coefficientSlices(columns: number): RowRange[] {
  return rangesOfSize(columns, FITTED_COLUMNS);
}

/** The slices of the stages of a side's attributes. `parts`: the row ranges of the side's parts. */
export function attributeSlices(
  problem: AlsProblem,
  side: Side,
  parts: readonly RowRange[],
  attributes: Pick<RatingBlock, 'offsets'> | undefined,
): Record<string, Slice[][]> {
  if (attributes === undefined) return {};
  const predicted = parts.map(({ from: first, to }) => {
    const offsets = attributes.offsets.slice(first, to + 1).map((at, _, [base]) => at - base);
    const ranges = balancedRanges(offsets, taskCount(offsets[to - first]));
    return ranges.map((range) => ({ ...range, params: { first } }));
  });
  const features = problem.profile.attributes?.[side]?.features ?? 0;
  return Object.fromEntries(
    targetsOf(problem, side).flatMap(({ fit, predict, norm, columns }) => [
      [fit, [coefficientSlices(columns)]],
      [predict, predicted],
      [norm, [[{ from: 0, to: features }]]],
    ]),
  );
}

/** The stages of a plan for attributes in words, for its head. */
export function attributesText({ profile: { attributes = {} } }: AlsProblem): Record<string, number> {
  const { users, items } = attributes;
  return {
    ...(users && { 'features of users': users.features }),
    ...(items && { 'features of items': items.features }),
  };
}
