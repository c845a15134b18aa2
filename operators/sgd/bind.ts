import type { JsonObject } from '../../engine/json.ts';
import { dataSetName, type Partition, sharedArray } from '../../engine/partition.ts';
import { type BoundPlan, dataSetOf, partRef } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { type PhysicalPlan, stageNamed } from '../../engine/plan/physical-plan.ts';
import type { RowRange, Stage, TaskPlan } from '../../engine/plan/stages.ts';
import { readRows } from '../../engine/row-parts.ts';
import type { Given } from '../../engine/run/run-steps.ts';
import { fits } from '../planner/sizes.ts';
import { balancedRanges, evenRanges, taskCount } from '../ratings/row-ranges.ts';
import { bindPlan, type BoundRun, cutKeys, type GivenPart, startFromHost } from '../training/bind-plan.ts';
import { type SideNorms, measureStages } from '../training/loss.ts';
import {
  deviceOfBand,
  type GivenRole,
  rowPartsOf,
  type SgdDataSet,
  sgdDataSets,
  type SgdSizes,
  steppedMatrices,
} from './data-sets.ts';
import type { SgdData, SgdSide } from './data/data.ts';
import type { HostPart, SgdLayoutData } from './data/layout.ts';
import { type TrainedFactors, biasColumns } from './factors.ts';
import { sgdFeatures, type SgdParams, steppedLambdas, shrinkOf } from './params.ts';
import { scheduleOf } from './plan.ts';
import { hogwildTeams } from './schedules/gpu-schedules.ts';
import { BATCH_RATINGS, type SgdSchedule } from './schedules/schedule.ts';
import { teamOf, tileShape } from './schedules/tiles.ts';
import { TASKS_PER_WORKER } from './stages.ts';

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
    taskOf: (task, stage) => ({
      ...task,
      params: { ...task.params, ...paramsOf(problem, stage, task) },
      ...shapesOf(problem, task),
    }),
    stageOf: (stage) => inGrid(problem, stage),
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

/** A stage that visits blocks, with their real grid. */
function inGrid({ laid: { bands, blocks, tests } }: Problem, stage: Stage): Stage {
  const { work } = stage;
  if (work.kind !== 'blocks') return stage;
  const grid = { ...work.grid, rows: bands.rows.length, columns: bands.columns.length };
  const visited = (grid.of === 'tests' ? tests : blocks)?.flat().filter(({ ratings }) => ratings > 0);
  return {
    ...stage,
    tasks: visited?.length,
    partitions: { p: grid.columns, q: grid.rows },
    work: { ...work, grid },
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

/**
 * Standard deviation of an initial factor, for scaled ratings. A smaller one is better if there are many
 * ratings for each factor (test RMSE at MovieLens-20M's shape, k = 32: 0.739 from 0.03, 0.740 from 0.06,
 * 0.742 from 0.1), a larger one if there are few (ml-latest-small with biases: 0.848, 0.844, 0.843).
 */
const SPREAD = 0.06;

/**
 * Parameters of the task `initialize` for the rows or the columns of R. Without biases all factors are
 * shifted by the same amount, so that initial products are near the mean rating: k · √(|μ|/σk) · ±√(|μ|/σk) =
 * μ/σ.
 */
function startParams(
  { rank, seed, biases }: Pick<SgdParams, 'rank' | 'seed' | 'biases'>,
  { scale }: Pick<SgdData, 'scale'>,
  isRow: boolean,
) {
  const level = scale.mean / scale.deviation;
  const shift = Math.sqrt(Math.abs(level) / rank) * (isRow ? 1 : Math.sign(level));
  const form = biases ? { first: 2, oneAt: biasColumns(isRow).one } : { shift };
  return { rank, seed, norm: SPREAD * Math.sqrt(rank), ...form };
}

/** The norms of a side of which SGD's penalty consists, for users and items. */
export type PenaltyNorms = Readonly<Record<'users' | 'items', Pick<SideNorms, 'weighted' | 'plain'>>>;

/** The expected norms of random initial factors, as `weighted-norm` measures them. */
export function startNorms(data: SgdData, params: SgdParams): PenaltyNorms {
  const ratings = data.ratings.ratings;
  const norms = ({ name, labels }: SgdSide) => {
    const { norm, shift = 0 } = startParams(params, data, true);
    const squares = norm ** 2 + params.rank * shift ** 2;
    return {
      weighted: ratings * (squares + (params.biases ? 1 : 0)),
      plain: shrinkOf(params)[name].offset * labels.label.length * squares,
    };
  };
  const [rows, columns] = [norms(data.rows), norms(data.columns)];
  return data.rows.name === 'users' ? { users: rows, items: columns } : { users: columns, items: rows };
}

/** The stages before the first epoch if initial factors are given. `epoch`: its number. */
function startFrom(plan: PhysicalPlan, { rowSums }: TrainedFactors, epoch: number): Stage[] {
  const data = steppedMatrices(rowSums !== undefined).map(({ name }) => name);
  return startFromHost(plan, data).map((stage) => {
    const { name, work } = stage;
    if (name !== 'first-batch-order' || work.kind !== 'tasks') return stage;
    const tasks = work.tasks.map((task) => ({ ...task, params: { ...task.params, epoch } }));
    return { ...stage, work: { kind: 'tasks', tasks } };
  });
}

/**
 * The partitions of given initial factors, in host memory. Segments of columns are padded to the width of the
 * widest.
 */
function givenFactors(bound: BoundPlan, start: TrainedFactors, cuts: SgdCuts): Given[] {
  return steppedMatrices(true).flatMap(({ name, side, key }) => {
    const matrix = start[key];
    if (matrix === undefined) return [];
    const set = dataSetOf(bound, name);
    return cuts[`${side}s`].map(({ from, to }, part): Given => {
      const own = readRows(matrix, from, to, true);
      const { rows } = set.parts[part];
      const values = to - from === rows ? own : sharedArray(Float32Array, rows * matrix.columns);
      if (values !== own) values.set(own);
      const packed = set.packed ? { packed: true } : {};
      return [partRef(bound, set, part, 0), { layout: 'factors', rows, columns: { values }, ...packed }];
    });
  });
}

/**
 * Row and column ranges of the parts of the factors. `width`: the most columns of a part; all parts of
 * columns (segments) are stored that wide.
 */
interface SgdCuts {
  readonly rows: readonly RowRange[];
  readonly columns: readonly RowRange[];
  readonly width: number;
}

type RowOffsets = Int32Array | Float64Array;

/**
 * The slices of each stage: for each part, the row ranges of its tasks. `host`: the device that draws the
 * initial factors.
 */
function sgdSlices(
  { rows, columns, columnOffsets, ratings }: SgdData,
  laid: SgdLayoutData,
  { kind, deviceBlocks, workers }: SgdSchedule,
  cuts: SgdCuts,
  { device, host }: { readonly device: DeviceInfo; readonly host: DeviceInfo },
): Record<string, RowRange[][]> {
  const even = (parts: number) => ({
    rows: cuts.rows.map(({ from, to }) => evenRanges(to - from, parts)),
    columns: cuts.columns.map(() => evenRanges(cuts.width, parts)),
  });
  const copied = even(device.parallelism);
  const shrunk = even(device.wholePasses ? 1 : device.parallelism);
  const started = 4 * host.parallelism;
  const common = {
    'initialize-rows': even(started).rows,
    'initialize-columns': cuts.columns.map(({ from, to }) => evenRanges(to - from, started)),
    'copy-rows': copied.rows,
    'copy-row-sums': copied.rows,
    'copy-columns': copied.columns,
    'copy-column-sums': copied.columns,
    'shrink-rows': shrunk.rows,
  };
  if (deviceBlocks) return common;
  const pass = (offsets: RowOffsets) =>
    balancedRanges(offsets, device.wholePasses ? 1 : taskCount(offsets[offsets.length - 1]));
  const passes = (parts: SgdLayoutData['ratings']) =>
    parts.map(({ partition }) => pass(partition.columns.offsets as Int32Array));
  const ofRows = passes(laid.ratings);
  const batches = Math.ceil(ratings.ratings / BATCH_RATINGS);
  return {
    ...common,
    'shrink-columns': shrunk.columns,
    ...(kind === 'hogwild'
      ? { 'sgd-epoch': [evenRanges(batches, device.wholePasses ? 1 : TASKS_PER_WORKER * workers)] }
      : {}),
    [measureStages.train]: ofRows,
    [measureStages[rows.name]]: ofRows,
    [measureStages[columns.name]]: [pass(columnOffsets)],
    ...(laid.tests === undefined ? {} : { [measureStages.test]: passes(laid.tests.flat()) }),
  };
}
