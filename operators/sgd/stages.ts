import type { JsonObject } from '../../engine/json.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { DataUse, DataUses, Stage, TaskPlan, Work } from '../../engine/plan/stages.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import { taskStage } from '../planner/load-stages.ts';
import { blockBytes, type RatingsProfile } from '../planner/sizes.ts';
import { taskCount } from '../ratings/row-ranges.ts';
import { measureStages } from '../training/loss.ts';
import { steppedMatrices, deviceOfBand, rowPartsOf } from './data-sets.ts';
import { biasColumns } from './factors.ts';
import { type SgdParams, shrinkOf, lambdasOf, shrinks, sgdFeatures } from './params.ts';
import { staysOnDevice } from './schedules/gpu-schedules.ts';
import { BATCH_RATINGS, type SgdSchedule } from './schedules/schedule.ts';
import type { TileShape } from './schedules/tiles.ts';

/** Details of a plan in addition to the sizes in the profile. */
export interface SgdPlanDetails {
  /**
   * Number of ratings of each item and of each user. If known, the expected number of collisions is exact.
   */
  readonly itemCounts?: ArrayLike<number>;
  readonly userCounts?: ArrayLike<number>;
  /** Name, for messages, of the model from which training continues. */
  readonly start?: string;
  /** A schedule that was chosen before; no choice is made then. */
  readonly schedule?: SgdSchedule;
}

/** A run of SGD by one schedule: the input of all functions that make parts of its plan. */
export interface SgdProblem extends PlanDevices {
  readonly profile: RatingsProfile;
  readonly params: SgdParams;
  readonly schedule: SgdSchedule;
  readonly details: SgdPlanDetails;
  /** First device that computes. */
  readonly device: DeviceInfo;
  /** Number of features in a row of factors. */
  readonly features: number;
  /** Layout of the ratings for the steps of an epoch. */
  readonly layout: SgdLayout;
  /** For each part of the rows' factors, the device that runs its tasks. */
  readonly rowPlaces: readonly Place[];
}

export function sgdProblem(
  given: Pick<SgdProblem, 'profile' | 'params' | 'schedule' | 'details' | 'compute' | 'host'>,
): SgdProblem {
  const { profile, params, schedule, compute } = given;
  const bands = Array.from({ length: rowPartsOf(schedule) }, (_, band) => deviceOfBand(schedule, band));
  return {
    ...given,
    device: compute[0],
    features: sgdFeatures(params),
    layout: layoutOf(schedule, profile.ratings, Math.max(profile.users, profile.items)),
    rowPlaces: bands.map((device) => compute[device].place),
  };
}

/** The layout into which ratings are brought before the steps, and its memory. */
interface SgdLayout {
  /** Name of the stage that makes the layout, before the steps or in the first epoch. */
  readonly name: string;
  readonly kernel: string;
  readonly where: 'host' | 'device';
  readonly tasks?: number;
  readonly bytes: number;
  /** Bytes of the largest buffer on a GPU. */
  readonly bufferBytes: number;
  readonly step: string;
}

/** The layout in which a schedule steps `nz` ratings of `rows` rows. */
function layoutOf(
  { kind, rowBands, columnBands, precision, deviceBlocks }: SgdSchedule,
  nz: number,
  rows: number,
): SgdLayout {
  const step = `sgd-block ${kind}`;
  const cut = {
    name: 'cut-blocks',
    kernel: 'place-columns',
    where: 'host',
    tasks: rowBands,
    bytes: 8 * nz + 4 * rows * columnBands,
  } as const;
  // With one band of columns, a block consists of whole rows of the sorted ratings, so it is a view and not a
  // copy.
  const blocks = columnBands === 1 ? ({ ...cut, where: 'device' } as const) : cut;
  if (deviceBlocks?.steps === 'tile')
    return { ...blocks, bufferBytes: (8 * nz) / (rowBands * columnBands), step: 'sgd-tiles' };
  if (deviceBlocks)
    return {
      ...cut,
      kernel: 'place-columns, shuffle-ratings',
      bytes: cut.bytes + 12 * nz,
      bufferBytes: (4 * nz) / (rowBands * columnBands),
      step,
    };
  if (kind === 'tile')
    return {
      name: 'deal-ratings',
      kernel: 'sgd-tile-count, sgd-tile-scatter',
      where: 'device',
      bytes: 8 * nz,
      bufferBytes: 8 * nz,
      step: 'sgd-tiles',
    };
  if (kind === 'hogwild')
    return {
      name: 'shuffle-ratings',
      kernel: 'deal-ratings, shuffle-ratings',
      where: 'host',
      bytes: 12 * nz,
      bufferBytes: 4 * nz,
      step,
    };
  if (precision !== undefined)
    return {
      name: 'sort-waves',
      kernel: 'sgd-wave-count, sgd-wave-scatter',
      where: 'device',
      bytes: 12 * nz,
      bufferBytes: 12 * nz,
      step: 'sgd-waves',
    };
  return { ...cut, bufferBytes: 0, step };
}

/** Numbers of the random streams for the order of batches: `list` for all ratings, `block` within a block. */
const ORDER_STREAMS = { list: 0xba7c, block: 0xb10c } as const;

/**
 * Number of tasks for each worker in an epoch of Hogwild!. With several tasks, other workers do not wait
 * long for a slow one.
 */
export const TASKS_PER_WORKER = 8;

interface Round extends SgdProblem {
  /** The stage `sgd-epoch` without its work. */
  readonly epoch: Omit<Stage, 'work'>;
}

/** Stages of an epoch. λ and the mean of the ratings become parameters when the plan is bound to ratings. */
export function roundStages(round: Round): Stage[] {
  const { schedule, device } = round;
  if (schedule.deviceBlocks) return blocksOfDevices(round, schedule.deviceBlocks);
  if (schedule.tile) return tiles(round, schedule.tile);
  if (schedule.kind === 'hogwild') return hogwild(round);
  return device.ownMemory ? waves(round) : blocks(round);
}

function blocksOfDevices(round: Round, deviceBlocks: NonNullable<SgdSchedule['deviceBlocks']>): Stage[] {
  const { params, schedule, epoch } = round;
  const { rowBands, columnBands } = schedule;
  const stays = staysOnDevice(schedule);
  const stayIn = (side: 'row' | 'column') => stays[`${side}s`];
  // Each epoch updates a copy of the factors. Factors in host memory are copied when their blocks are
  // stepped.
  const copied = copies(round).filter((_, at) => stayIn(matricesOf(round)[at].side));
  const shrunk = shrinkStages(round).filter(({ name }) => name === 'shrink-rows' && stays.rows);
  const passed = matricesOf(round).flatMap(({ name, side }) => (side === 'column' ? [name] : []));
  const order =
    deviceBlocks.resident && deviceBlocks.bandsADevice === undefined
      ? ({
          order: 'turns',
          ...(deviceBlocks.stays ? { stays: true } : {}),
          passes: rowBands > 1 ? passed : [],
        } as const)
      : ({ order: 'latin' } as const);
  const work: Work = {
    kind: 'blocks',
    ...order,
    seed: params.seed,
    grid: { rows: rowBands, columns: columnBands, of: 'blocks' },
    tasks: [
      ...shrinkAtFirst(round, stays),
      ...(deviceBlocks.steps === 'tile' ? tileOfBlock : listOfBlock)(round),
    ],
  };
  return [...copied, ...shrunk, { ...epoch, tasks: rowBands * columnBands, work }];
}

/**
 * Tasks that shrink factors (see `shrink-rows`) within the pass over the blocks: a segment of columns on the
 * first device that steps it, and a band of rows in host memory where it is stepped first. AdaGrad's sums
 * count as changed in place too, since only the version that this epoch updates is on the device.
 */
function shrinkAtFirst({ params, schedule }: Round, stays: { readonly rows: boolean }): TaskPlan[] {
  return shrinkTasks(params, schedule.rows).flatMap(({ side, task }): TaskPlan[] =>
    side === 'row' && stays.rows
      ? []
      : [
          {
            ...task,
            uses: shrunkBy(params, side, { step: 'alone' }),
            params: { ...task.params, from: 0 },
            takes: { ...task.takes, to: side === 'row' ? 'rowCount' : 'width' },
            stage: `shrink-${side}s`,
            once: side,
          },
        ],
  );
}

function tileTask(round: Round, uses: DataUses, shape: JsonObject): TaskPlan {
  return {
    kernel: 'sgd-tiles',
    uses,
    params: { ...stepParams(round), ...shape, seed: round.params.seed },
    takes: { rate: 'rate', epoch: 'epoch' },
  };
}

function tileOfBlock(round: Round): TaskPlan[] {
  const uses = { ...stepped(round, { step: 'alone' }), block: 'blocks', ...sources(round) };
  return [tileTask(round, uses, {})];
}

function listOfBlock(round: Round): TaskPlan[] {
  const { params, schedule, host } = round;
  return [
    {
      kernel: 'batch-order',
      at: host.place,
      uses: { order: 'orders' },
      params: { seed: params.seed, stream: ORDER_STREAMS.block },
      takes: { epoch: 'epoch', batches: 'batches', block: 'column' },
    },
    {
      kernel: 'sgd-block',
      uses: { block: 'lists', order: 'orders', ...stepped(round, { step: 'alone' }) },
      params: { ...stepParams(round), from: 0, batch: BATCH_RATINGS, precision: schedule.precision },
      takes: { rate: 'rate', to: 'batches', workers: 'teams', lanes: 'lanes' },
    },
  ];
}

function tiles(round: Round, { tiles: count, lanes, threads, precision, arithmetic }: TileShape): Stage[] {
  const { before, uses } = betweenVersions(round);
  const shape = { tiles: count, lanes, threads, precision, arithmetic };
  const why = 'the first epoch deals the ratings to the tiles, where they stay';
  const task = tileTask(round, { block: 'ratings', ...uses }, shape);
  return [...before, wholePass(round, task, 8 * round.profile.ratings, why)];
}

function waves(round: Round): Stage[] {
  const { profile, params, schedule, host } = round;
  const { workers, columnBands, lanes, precision } = schedule;
  const { before, uses } = betweenVersions(round);
  const ofWaves: TaskPlan = {
    kernel: 'wave-order',
    uses: { order: 'wave-order' },
    params: { seed: params.seed, workers, columnBands },
    takes: { epoch: 'epoch' },
  };
  const order = taskStage('wave-order', [host.place], ofWaves, { tasks: 1 });
  const task: TaskPlan = {
    kernel: 'sgd-waves',
    uses: { block: 'ratings', order: 'wave-order', ...uses },
    params: { ...stepParams(round), lanes, precision },
    takes: { rate: 'rate' },
  };
  const why = 'the first epoch sorts the ratings by block, for all epochs';
  return [order, ...before, wholePass(round, task, 12 * profile.ratings, why)];
}

function wholePass({ epoch }: Round, task: TaskPlan, heldBytes: number, why: string): Stage {
  return { ...epoch, tasks: 1, work: tasks(task), heldBytes, reasons: [...(epoch.reasons ?? []), why] };
}

/** The order of the next epoch's batches is drawn while this epoch runs. */
function hogwild(round: Round): Stage[] {
  const { params, schedule, device, host, epoch } = round;
  const { ratings } = round.profile;
  const { lanes, workers, precision } = schedule;
  const task: TaskPlan = {
    kernel: 'sgd-block',
    uses: { block: 'list', order: { set: 'order', version: 'old' }, ...stepped(round, { step: 'shared' }) },
    params: {
      ...stepParams(round),
      ...(device.ownMemory ? { lanes, workers, precision } : {}),
      batch: BATCH_RATINGS,
    },
    takes: { rate: 'rate' },
  };
  const count = Math.min(Math.ceil(ratings / BATCH_RATINGS), TASKS_PER_WORKER * workers);
  return [
    ...copies(round),
    ...shrinkStages(round),
    { ...epoch, tasks: device.wholePasses ? 1 : count, work: tasks(task) },
    batchOrder(params, ratings, host.place, false),
  ];
}

function blocks(round: Round): Stage[] {
  const { params, schedule, epoch } = round;
  const { rowBands: rows, columnBands: columns, inBands } = schedule;
  const task: TaskPlan = {
    kernel: 'sgd-block',
    uses: { block: 'blocks', ...stepped(round, { step: 'alone' }) },
    params: stepParams(round),
    takes: { rate: 'rate', ...(inBands ? {} : { rowStart: 'rowFrom' }) },
  };
  const grid = { rows, columns, of: 'blocks' };
  const work: Work = { kind: 'blocks', order: 'latin', seed: params.seed, grid, tasks: [task] };
  return [...copies(round), ...shrinkStages(round), { ...epoch, tasks: rows * columns, work }];
}

/** Stage that draws the order of batches, for the first epoch or for the next one. */
export function batchOrder({ seed }: SgdParams, ratings: number, place: string, isFirst: boolean): Stage {
  const batches = Math.ceil(ratings / BATCH_RATINGS);
  const task: TaskPlan = {
    kernel: 'batch-order',
    uses: { order: 'order' },
    params: { seed, stream: ORDER_STREAMS.list, batches, ...(isFirst ? { epoch: 1 } : {}) },
    ...(isFirst ? {} : { takes: { epoch: 'next' } }),
  };
  return taskStage(isFirst ? 'first-batch-order' : 'batch-order', [place], task, { tasks: 1 });
}

/**
 * For a kernel that reads one version of the factors and writes the next. If factors are shrunk before the
 * epoch, the shrunk copy is stepped in place instead. Returns the stages before the kernel, and its uses of
 * the factors.
 */
function betweenVersions(round: Round): { readonly before: readonly Stage[]; readonly uses: DataUses } {
  const shrunk = shrinkStages(round);
  return shrunk.length === 0
    ? { before: [], uses: { ...sources(round, { version: 'old' }), ...stepped(round) } }
    : {
        before: [...copies(round), ...shrunk],
        uses: { ...sources(round), ...stepped(round, { step: 'alone' }) },
      };
}

function matricesOf({ params }: Round) {
  return steppedMatrices(params.rate === 'adagrad');
}

type How = Omit<DataUse, 'set'>;

function stepped(round: Round, how: How = {}): DataUses {
  return Object.fromEntries(matricesOf(round).map(({ name, key }) => [key, { set: name, ...how }]));
}

function sources(round: Round, how: How = {}): DataUses {
  return Object.fromEntries(matricesOf(round).map(({ name, source }) => [source, { set: name, ...how }]));
}

function stepParams({ params: { rank, biases, rate } }: Round): JsonObject {
  return { rank, biases, adaptive: rate === 'adagrad' };
}

function tasks(one: TaskPlan): Work {
  return { kind: 'tasks', tasks: [one] };
}

function copies(round: Round): Stage[] {
  const { schedule, device, rowPlaces } = round;
  const segments = schedule.deviceBlocks ? schedule.columnBands : 1;
  const columnPlaces = Array.from({ length: segments }, () => device.place);
  return matricesOf(round).map(({ name, side }) =>
    taskStage(`copy-${name}`, side === 'row' ? rowPlaces : columnPlaces, {
      kernel: 'copy-rows',
      uses: { source: { set: name, version: 'old' }, target: name },
    }),
  );
}

function shrinkStages({ params, schedule, device, rowPlaces }: Round): Stage[] {
  return shrinkTasks(params, schedule.rows).map(({ side, task }) =>
    taskStage(`shrink-${side}s`, side === 'row' ? rowPlaces : [device.place], task),
  );
}

/** Tasks that shrink each side's factors before an epoch; empty if nothing is shrunk. */
function shrinkTasks(
  params: SgdParams,
  rows: SgdSchedule['rows'],
): { readonly side: 'row' | 'column'; readonly task: TaskPlan }[] {
  const adaptive = params.rate === 'adagrad';
  return (['row', 'column'] as const).flatMap((side) => {
    const { offset, damping } = shrinkOf(params)[(side === 'row') === (rows === 'users') ? 'users' : 'items'];
    const columns = params.biases ? biasColumns(side === 'row') : {};
    const task: TaskPlan = {
      kernel: 'shrink-rows',
      uses: shrunkBy(params, side),
      params: { offset, damping, adaptive, ...columns },
      takes: { rate: 'rate' },
    };
    return offset === 0 && damping === 0 ? [] : [{ side, task }];
  });
}

function shrunkBy({ rate }: SgdParams, side: 'row' | 'column', how: How = {}): DataUses {
  const own = steppedMatrices(rate === 'adagrad').filter((matrix) => matrix.side === side);
  return Object.fromEntries(
    own.map(({ name }, at) => [at === 0 ? 'factors' : 'sums', { set: name, ...how }]),
  );
}

export function measuringStages(problem: SgdProblem): Stage[] {
  return problem.schedule.deviceBlocks ? blockErrors(problem) : wholeErrors(problem);
}

/**
 * Stages that measure errors and norms if a device holds all columns: over all ratings, or over each band of
 * rows.
 */
function wholeErrors(problem: SgdProblem): Stage[] {
  const { profile, features: rank, rowPlaces: at, device } = problem;
  const { users, items, ratings, testRatings } = profile;
  const pass = (name: string, task: TaskPlan, count: number) =>
    taskStage(name, at, task, { tasks: device.wholePasses ? 1 : taskCount(count) });
  const errors = (name: string, block: string, count: number): Stage => ({
    ...pass(name, errorTask(rank, block), count),
    bytesRead: blockBytes(Math.max(users, items), count),
    flops: 2 * count * rank,
  });
  const norms = (side: 'row' | 'column', block: string) =>
    normTasks(problem, side, block).map((task) => pass(stageOf(problem, side), task, ratings));
  return [
    errors(measureStages.train, 'ratings', ratings),
    ...norms('row', 'ratings'),
    ...norms('column', 'column-counts').map((norm) => ({ ...norm, at: at.slice(0, 1) })),
    ...(testRatings === undefined ? [] : [errors(measureStages.test, 'tests', testRatings)]),
  ];
}

/**
 * Stages that measure errors and norms by visiting all blocks of a grid. Any device may read any segment of
 * columns; the first one that reads it also measures its norm.
 */
function blockErrors(problem: SgdProblem): Stage[] {
  const { profile, params, schedule, features: rank, rowPlaces: at } = problem;
  const { rowBands: rows, columnBands: columns, deviceBlocks } = schedule;
  const sweep = (name: string, of: string, count: number, more: readonly TaskPlan[]): Stage => ({
    name,
    at,
    work: {
      kind: 'blocks',
      order: 'rotated',
      seed: params.seed,
      grid: { rows, columns, of },
      tasks: [partly(errorTask(rank, of), 'rowCount'), ...more],
    },
    kernel: 'squared-error',
    tasks: rows * columns,
    partitions: { p: columns, q: rows },
    flops: 2 * count * rank,
  });
  const norms = (side: 'row' | 'column', to: string) =>
    normTasks(problem, side, `${side}-counts`).map((task): TaskPlan => ({
      ...partly(task, to),
      stage: stageOf(problem, side),
      once: side,
    }));
  const share: Stage = {
    name: 'share-columns',
    at,
    work: { kind: 'exchange', how: 'share', data: ['columns'] },
    exchange: 'by turns',
  };
  const { ratings, testRatings } = profile;
  const passes = deviceBlocks?.resident && deviceBlocks.bandsADevice === undefined && rows > 1;
  return [
    ...(passes ? [share] : []),
    sweep(measureStages.train, 'blocks', ratings, [...norms('row', 'rowCount'), ...norms('column', 'width')]),
    ...(testRatings === undefined ? [] : [sweep(measureStages.test, 'tests', testRatings, [])]),
  ];
}

function errorTask(rank: number, block: string): TaskPlan {
  const uses = { block, rowFactors: 'rows', columnFactors: 'columns' };
  return { kernel: 'squared-error', uses, params: { rank } };
}

/**
 * The task, limited to the first rows of a part, since all segments are stored as wide as the widest. `to`:
 * name of the field of the visited block that has the number of rows.
 */
function partly(task: TaskPlan, to: string): TaskPlan {
  return { ...task, params: { ...task.params, from: 0 }, takes: { to } };
}

/** Tasks that measure the norms of a side for the penalty; empty if the side has no penalty. */
function normTasks(problem: SgdProblem, side: 'row' | 'column', block: string): TaskPlan[] {
  const { params, features: rank } = problem;
  const name = sideName(problem, side);
  const task = (more: JsonObject): TaskPlan[] => [
    { kernel: 'weighted-norm', uses: { block, factors: `${side}s` }, params: { rank, ...more } },
  ];
  if (!shrinks(params, name)) return lambdasOf(params)[name] === 0 ? [] : task({});
  const { offset, damping } = shrinkOf(params)[name];
  if (!params.biases) return task({ plainWeights: [offset, offset, offset] });
  return task({
    plainWeights: biasColumns(side === 'row').own === 0 ? [damping, 0, offset] : [0, damping, offset],
  });
}

function sideName({ schedule }: SgdProblem, side: 'row' | 'column'): 'users' | 'items' {
  return (side === 'row') === (schedule.rows === 'users') ? 'users' : 'items';
}

function stageOf(problem: SgdProblem, side: 'row' | 'column'): string {
  return measureStages[sideName(problem, side)];
}
