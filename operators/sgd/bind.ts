import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { JsonObject } from '../../engine/json.ts';
import { dataSetName, type Partition, sharedArray } from '../../engine/partition.ts';
import { type PhysicalPlan, stageNamed } from '../../engine/plan/physical-plan.ts';
import type { RowRange, Stage, TaskPlan } from '../../engine/plan/stages.ts';
import { fits } from '../planner/sizes.ts';
import { bindPlan, type BoundRun, cutKeys, type GivenPart } from '../training/bind-plan.ts';
import {
  deviceOfBand,
  type GivenRole,
  rowPartsOf,
  type SgdDataSet,
  sgdDataSets,
  type SgdSizes,
} from './data-sets.ts';
import type { HostPart } from './data/cut-blocks.ts';
import type { SgdData } from './data/data.ts';
import { hogwildTeams } from './schedules/gpu-schedule.ts';
import type { SgdLayoutData } from './data/layout.ts';
import type { TrainedFactors } from './factors.ts';
import { sgdFeatures, type SgdParams, steppedLambdas } from './params.ts';
import { scheduleOf } from './plan.ts';
import { BATCH_RATINGS, type SgdSchedule } from './schedules/schedule.ts';
import { type SgdCuts, sgdSlices } from './slices.ts';
import { givenFactors, startFrom, startParams } from './start.ts';
import { teamOf, tileShape } from './schedules/tiles.ts';

/**
 * Binds a plan, which was made from estimated sizes, to ratings in the layout of its schedule. If the blocks
 * of ratings turn out not to fit into the devices' memory, they are copied to a device for each use instead.
 * `epoch`: number of the first epoch after the given start.
 */
export function bindSgd(
  planned: PhysicalPlan,
  params: SgdParams,
  data: SgdData,
  laid: SgdLayoutData,
  start?: TrainedFactors,
  epoch = 1,
): BoundRun {
  const schedule = scheduleOf(planned);
  const infos = (stage: string) =>
    stageNamed(planned, stage).at.flatMap((at) => planned.devices.find(({ place }) => place === at) ?? []);
  const problem: Problem = {
    planned,
    params,
    data,
    laid,
    schedule,
    cuts: cutsOf(data, laid, schedule),
    compute: [...new Set(infos('sgd-epoch'))],
    host: infos('initialize-rows')[0],
    start,
    epoch,
  };
  const made = boundTo(problem, true);
  return fits(made.plan) ? made : boundTo(problem, false);
}

interface Problem {
  readonly planned: PhysicalPlan;
  readonly params: SgdParams;
  readonly data: SgdData;
  readonly laid: SgdLayoutData;
  readonly schedule: SgdSchedule;
  readonly cuts: SgdCuts;
  readonly compute: readonly DeviceInfo[];
  readonly host: DeviceInfo;
  readonly start: TrainedFactors | undefined;
  readonly epoch: number;
}

function cutsOf(data: SgdData, { bands }: SgdLayoutData, schedule: SgdSchedule): SgdCuts {
  const parted = schedule.deviceBlocks !== undefined;
  const columns = parted ? bands.columns : [{ from: 0, to: data.columnOffsets.length - 1 }];
  return {
    rows: rowPartsOf(schedule) > 1 || parted ? bands.rows : [{ from: 0, to: data.ratings.rows }],
    columns,
    width: Math.max(...columns.map(({ from, to }) => to - from)),
  };
}

function boundTo(problem: Problem, mayStay: boolean): BoundRun {
  const { params, laid, schedule, cuts, compute, host, start, epoch } = problem;
  const name = dataSetName('sgd');
  const resident = mayStay && (schedule.deviceBlocks?.resident ?? true);
  const planned = {
    ...problem.planned,
    start: problem.planned.start.filter((stage) => resident || stage.name !== 'place-ratings'),
  };
  const bound = bindPlan(planned, {
    name,
    datasets: sgdDataSets(sizesOf(problem), params, schedule, { compute, host }, resident),
    partsOf: (set) => givenParts(problem, name, set),
    slices: sgdSlices(problem.data, laid, schedule, cuts, { device: compute[0], host }),
    stageOf: (stage) => boundStage(problem, stage),
    startOf: start && ((plan) => startFrom(plan, start, epoch)),
    bands: laid.bands,
    blockSizes: ratingsOfBlocks(laid),
    ...(schedule.deviceBlocks && laid.blocks ? { blockFields: blockFields(problem, laid.blocks) } : {}),
  });
  const factors = start === undefined ? [] : givenFactors(bound.bound, start, cuts);
  return { ...bound, given: [...bound.given, ...factors] };
}

function sizesOf({ cuts, laid }: Problem): SgdSizes {
  const lengths = (ranges: readonly RowRange[]) => ranges.map(({ from, to }) => to - from);
  const sizes = (parts: readonly HostPart[]) =>
    parts.map(({ partition: { rows }, ratings }) => ({ rows, ratings }));
  return {
    rows: lengths(cuts.rows),
    columns: lengths(cuts.columns),
    ratings: sizes(laid.ratings),
    blocks: sizes(laid.blocks?.flat() ?? []),
    tests: laid.tests && sizes(laid.tests.flat()),
  };
}

/** The partitions of a data set that exists before the first step. */
function givenParts(
  { data, laid, cuts, start }: Problem,
  name: string,
  { name: set, role, side = 'row' }: SgdDataSet,
): readonly GivenPart[] {
  const ranges = cuts[`${side}s`];
  const called = `${name}/${set}`;
  const parts: Readonly<Record<GivenRole, () => readonly GivenPart[]>> = {
    keys: () => cutKeys(called, ranges, start === undefined ? data[`${side}s`].ids : undefined),
    counts: () =>
      ranges.map((range, partition) => {
        const count = side === 'row' ? range.to - range.from : cuts.width;
        const ref = { name: called, partition, version: 0 };
        return { ref, partition: countsBlock(data, side, range, count) };
      }),
    ratings: () => laid.ratings,
    blocks: () => laid.blocks?.flat() ?? [],
    list: () => laid.lists?.flat() ?? [],
    lists: () => laid.lists?.flat() ?? [],
    tests: () => laid.tests?.flat() ?? [],
  };
  return parts[role as GivenRole]();
}

function ratingsOfBlocks({ blocks, tests }: SgdLayoutData): Record<string, number[][]> {
  const sizes = (parts: readonly (readonly HostPart[])[]) =>
    parts.map((row) => row.map(({ ratings }) => ratings));
  return { ...(blocks ? { blocks: sizes(blocks) } : {}), ...(tests ? { tests: sizes(tests) } : {}) };
}

/** Parameters of the tasks that step blocks on devices, for each block of the grid. */
function blockFields(
  { params, schedule, compute, cuts: { width } }: Problem,
  blocks: readonly (readonly HostPart[])[],
): JsonObject[][] {
  const features = sgdFeatures(params);
  return blocks.map((row, band) =>
    row.map(({ ratings }) => ({
      width,
      batches: Math.ceil(ratings / BATCH_RATINGS),
      teams: hogwildTeams(width, ratings),
      lanes: teamOf(features, compute[deviceOfBand(schedule, band)].limits),
    })),
  );
}

/** Adds the parameters that depend on the ratings to a stage. */
function boundStage(problem: Problem, stage: Stage): Stage {
  const { bands, blocks, tests } = problem.laid;
  const { work } = stage;
  if (work.kind !== 'tasks' && work.kind !== 'blocks') return stage;
  const tasks = work.tasks.map((task) => ({
    ...task,
    params: { ...task.params, ...paramsOf(problem, stage.name, task) },
    ...shapesOf(problem, task),
  }));
  if (work.kind === 'tasks') return { ...stage, work: { kind: 'tasks', tasks } };
  const grid = { ...work.grid, rows: bands.rows.length, columns: bands.columns.length };
  const visited = (grid.of === 'tests' ? tests : blocks)?.flat().filter(({ ratings }) => ratings > 0);
  return {
    ...stage,
    tasks: visited?.length,
    partitions: { p: grid.columns, q: grid.rows },
    work: { ...work, grid, tasks },
  };
}

function paramsOf({ params, data, laid }: Problem, stage: string, { kernel }: TaskPlan): JsonObject {
  const { scale, rows, columns } = data;
  const { bands } = laid;
  const starts = (ranges: readonly RowRange[]) => [0, ...ranges.map(({ to }) => to)];
  const lambdas = steppedLambdas(params, scale.deviation);
  const step = { rowLambda: lambdas[rows.name], columnLambda: lambdas[columns.name] };
  switch (kernel) {
    case 'initialize':
      return startParams(params, data, stage === 'initialize-rows');
    case 'sgd-block':
      return step;
    case 'sgd-tiles':
      return { ...step, level: (scale.mean - scale.center) / scale.deviation };
    case 'sgd-waves':
      return { ...step, rowStarts: starts(bands.rows), columnStarts: starts(bands.columns) };
    case 'wave-order':
      return { workers: bands.rows.length, columnBands: bands.columns.length };
    default:
      return {};
  }
}

/**
 * If blocks are stepped by tiles: the parameters of the tiles for each band of rows, by the widest segment of
 * columns. They depend on the band's device.
 */
function shapesOf(
  { params, data, laid, schedule, compute, cuts: { width } }: Problem,
  { kernel }: TaskPlan,
): Pick<TaskPlan, 'perPart'> {
  if (kernel !== 'sgd-tiles' || schedule.deviceBlocks === undefined) return {};
  const { rows, columns } = laid.bands;
  const ratings = Math.ceil(data.ratings.ratings / (rows.length * columns.length));
  return {
    perPart: rows.map((_, band) => {
      const device = compute[deviceOfBand(schedule, band)];
      const shape = tileShape({ columns: width, ratings }, params, device);
      if (shape === undefined)
        throw new Error(`the tiles of a segment of ${width} columns do not fit ${device.place}`);
      const { tiles, lanes, threads, precision, arithmetic } = shape;
      return { tiles, lanes, threads, precision, arithmetic };
    }),
  };
}

/**
 * Makes a block without ratings, whose row offsets give the number of ratings of some rows of a side. It has
 * `count` rows; rows beyond the given range count 0 ratings.
 */
function countsBlock(
  data: SgdData,
  side: 'row' | 'column',
  { from, to }: RowRange,
  count: number,
): Partition {
  const offsets =
    side === 'row' ? offsetsOfRows(data, { from, to }) : data.columnOffsets.subarray(from, to + 1);
  // Offsets above 2^32 wrap around; their differences stay correct.
  const own = sharedArray(Int32Array, count + 1);
  for (let row = 0; row <= count; row++) own[row] = offsets[Math.min(row, offsets.length - 1)] - offsets[0];
  return {
    layout: 'rating-block',
    rows: count,
    columns: { offsets: own, indices: new Uint32Array(0), values: new Float32Array(0) },
  };
}

/** The offsets of some rows, which must all be in one part of the ratings. */
function offsetsOfRows({ ratings }: SgdData, { from, to }: RowRange): Int32Array | Float64Array {
  const part = ratings.parts.find((one) => one.from <= from && to <= one.from + one.rows);
  if (part === undefined) throw new Error(`no part of the ratings has the rows ${from} to ${to}`);
  return part.offsets.subarray(from - part.from, to - part.from + 1);
}
