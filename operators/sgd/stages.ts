import type { PlanDevices } from '../../engine/run/devices.ts';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { DataUses, Stage, TaskPlan, Work } from '../../engine/plan/stages.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { blockBytes, factorBytes } from '../planner/sizes.ts';
import { taskCount } from '../ratings/row-ranges.ts';
import { measureStages } from '../training/loss.ts';
import { layoutOf } from './bytes.ts';
import { deviceOfBand, rowPartsOf } from './data-sets.ts';
import { biasColumns } from './factors.ts';
import { lambdasOf, type SgdParams, shrinkOf, shrinks } from './params.ts';
import { staysOnDevice } from './schedules/blocks-schedule.ts';
import { BATCH_RATINGS, type SgdSchedule } from './schedules/schedule.ts';

export type SgdStages = Pick<PhysicalPlan, 'start' | 'round' | 'measure' | 'end'>;

/** Streams of the generator that draw the order of batches: over all ratings, and within a block. */
const ORDER_STREAMS = { list: 0xba7c, block: 0xb10c } as const;

/** Tasks for each worker in an epoch of Hogwild!, so that the others wait little for a slow one. */
export const TASKS_PER_WORKER = 8;

/** The stages of a run of SGD. Parameters that depend on the data are bound later. */
export function sgdStages(
  profile: RatingsProfile,
  params: SgdParams,
  schedule: SgdSchedule,
  { compute, host }: PlanDevices,
  reasons: { readonly epoch: readonly string[]; readonly start: string },
): SgdStages {
  const { ratings: nz, testRatings } = profile;
  const [device] = compute;
  const { deviceBlocks, rowBands, columnBands, kind } = schedule;
  const places = compute.map(({ place }) => place);
  const adaptive = params.rate === 'adagrad';
  const features = params.rank + (params.biases ? 2 : 0);
  const rows = Math.max(profile.users, profile.items);
  const segments = deviceBlocks ? columnBands : 1;
  const rowPlaces = placesOfRows(schedule, places);
  const layout = layoutOf(schedule, nz, rows);
  const versionBytes =
    factorBytes(profile.users, features, device.strideStep) +
    factorBytes(profile.items, features, device.strideStep);
  const initialize = (side: 'row' | 'column', parts: number, why: readonly string[]): Stage => ({
    name: `initialize-${side}s`,
    at: Array.from({ length: parts }, () => host.place),
    work: {
      kind: 'tasks',
      tasks: [{ kernel: 'initialize', uses: { keys: `${side}-keys`, factors: `${side}s` } }],
    },
    kernel: 'initialize',
    reasons: why,
  });
  const parted = deviceBlocks !== undefined;
  const resident = deviceBlocks === undefined || deviceBlocks.resident;
  const laid = parted
    ? deviceBlocks.steps === 'tile'
      ? ['blocks']
      : ['blocks', 'lists']
    : kind === 'hogwild'
      ? ['ratings', 'list']
      : schedule.tile !== undefined || device.ownMemory
        ? ['ratings']
        : ['ratings', 'blocks'];
  const start: Stage[] = [
    ...(resident
      ? [
          {
            name: 'place-ratings',
            at: places,
            work: {
              kind: 'exchange',
              how: 'move',
              data: [
                ...laid,
                ...(parted ? [] : ['column-counts']),
                ...(testRatings === undefined ? [] : ['tests']),
              ],
              to: 'places',
            },
          } satisfies Stage,
        ]
      : []),
    initialize('row', rowPlaces.length, [reasons.start]),
    initialize('column', segments, []),
    ...(adaptive
      ? [
          {
            name: 'allocate',
            at: rowPlaces,
            work: { kind: 'allocate', data: ['row-sums', 'column-sums'] },
          } satisfies Stage,
        ]
      : []),
    ...(!parted && kind === 'hogwild' ? [batchOrder(params, nz, host.place, { epoch: 1 })] : []),
  ];
  const epoch: Pick<
    Stage,
    'name' | 'at' | 'kernel' | 'partitions' | 'bytesRead' | 'bytesWritten' | 'flops' | 'exchange' | 'reasons'
  > = {
    name: 'sgd-epoch',
    at: parted ? rowPlaces : places,
    kernel: [layout.step, schedule.precision].filter((part) => part !== undefined).join(' '),
    partitions: { p: columnBands, q: rowBands },
    bytesRead: layout.bytes + versionBytes,
    bytesWritten: versionBytes,
    flops: 10 * nz * features,
    ...(deviceBlocks
      ? {
          exchange:
            deviceBlocks.movedBytes === 0
              ? 'none'
              : `${formatBytes(deviceBlocks.movedBytes)} of ${deviceBlocks.rowsStaged ? 'factors' : 'segments'} ${deviceBlocks.resident ? 'passed on' : 'up, and down'}`,
        }
      : device.ownMemory
        ? {}
        : { exchange: 'shared memory' }),
    reasons: reasons.epoch,
  };
  const round = roundStages(profile, params, schedule, { compute, host }, epoch);
  const sides =
    schedule.rows === 'users'
      ? ({ row: 'users', column: 'items' } as const)
      : ({ row: 'items', column: 'users' } as const);
  const measure = parted
    ? blockErrors(schedule, profile, features, rowPlaces, sides, params)
    : wholeErrors(profile, features, rowPlaces, device.wholePasses, sides, params);
  const end: Stage[] = [
    {
      name: 'fetch-factors',
      at: rowPlaces,
      work: {
        kind: 'exchange',
        how: 'move',
        data: ['rows', 'columns', ...(adaptive ? ['row-sums', 'column-sums'] : [])],
        to: 'host',
      },
    },
  ];
  return { start, round, measure, end };
}

/** The place of each part of the rows' factors, at which its tasks run. */
function placesOfRows(schedule: SgdSchedule, places: readonly string[]): string[] {
  return Array.from({ length: rowPartsOf(schedule) }, (_, band) => places[deviceOfBand(schedule, band)]);
}

function batchOrder(
  { seed }: SgdParams,
  nz: number,
  place: string,
  epoch: { readonly epoch: number } | { readonly takes: string },
): Stage {
  const task: TaskPlan = {
    kernel: 'batch-order',
    uses: { order: 'order' },
    params: {
      seed,
      stream: ORDER_STREAMS.list,
      batches: Math.ceil(nz / BATCH_RATINGS),
      ...('epoch' in epoch ? epoch : {}),
    },
    ...('takes' in epoch ? { takes: { epoch: epoch.takes } } : {}),
  };
  return {
    name: 'epoch' in epoch ? 'first-batch-order' : 'batch-order',
    at: [place],
    work: { kind: 'tasks', tasks: [task] },
    kernel: 'batch-order',
    tasks: 1,
  };
}

type EpochStage = Omit<Stage, 'work'>;

function roundStages(
  { ratings: nz }: RatingsProfile,
  params: SgdParams,
  schedule: SgdSchedule,
  { compute, host }: PlanDevices,
  epoch: EpochStage,
): Stage[] {
  const { rank, biases, seed } = params;
  const adaptive = params.rate === 'adagrad';
  const { kind, tile, workers, lanes, precision, deviceBlocks, rowBands, columnBands } = schedule;
  const [device] = compute;
  const rowPlaces = placesOfRows(
    schedule,
    compute.map(({ place }) => place),
  );
  // λ and the level of the ratings come with the data.
  const step: JsonObject = { rank, biases, adaptive };
  const shrinking = shrinkTasks(params, schedule.rows);
  const used = (suffix: string): DataUses => ({
    rows: `rows${suffix}`,
    columns: `columns${suffix}`,
    ...(adaptive ? { rowSums: `row-sums${suffix}`, columnSums: `column-sums${suffix}` } : {}),
  });
  const sources = (suffix: string): DataUses => ({
    sourceRows: `rows${suffix}`,
    sourceColumns: `columns${suffix}`,
    ...(adaptive ? { sourceRowSums: `row-sums${suffix}`, sourceColumnSums: `column-sums${suffix}` } : {}),
  });
  const copies = (data: readonly string[]): Stage[] =>
    data.map((name) => ({
      name: `copy-${name}`,
      at: name.startsWith('row')
        ? rowPlaces
        : Array.from({ length: deviceBlocks ? columnBands : 1 }, () => device.place),
      work: {
        kind: 'tasks',
        tasks: [{ kernel: 'copy-rows', uses: { source: `${name}@old`, target: name } }],
      },
      kernel: 'copy-rows',
    }));
  const both = ['rows', 'columns', ...(adaptive ? ['row-sums', 'column-sums'] : [])];
  const tasks = (one: TaskPlan): Work => ({ kind: 'tasks', tasks: [one] });
  const shrinkStages: Stage[] = shrinking.map(({ side, task }) => ({
    name: `shrink-${side}s`,
    at: side === 'row' ? rowPlaces : [device.place],
    work: tasks(task),
    kernel: task.kernel,
  }));
  if (deviceBlocks) {
    const grid = { rows: rowBands, columns: columnBands, of: 'blocks' };
    const steps: TaskPlan[] =
      deviceBlocks.steps === 'tile'
        ? [
            {
              kernel: 'sgd-tiles',
              uses: { ...used('@here'), block: 'blocks', ...sources('') },
              params: { ...step, seed },
              takes: { rate: 'rate', epoch: 'epoch' },
            },
          ]
        : [
            {
              kernel: 'batch-order',
              at: host.place,
              uses: { order: 'orders' },
              params: { seed, stream: ORDER_STREAMS.block },
              takes: { epoch: 'epoch', batches: 'batches', block: 'column' },
            },
            {
              kernel: 'sgd-block',
              uses: { block: 'lists', order: 'orders', ...used('@here') },
              params: { ...step, from: 0, batch: BATCH_RATINGS, precision },
              takes: { rate: 'rate', to: 'batches', workers: 'teams', lanes: 'lanes' },
            },
          ];
    const stays = staysOnDevice(schedule);
    // A segment is shrunk by the device that steps it first, and a band that comes from host memory where it
    // is stepped. Their sums come as they are stepped later, so that they lie there once.
    const first = shrinking.flatMap(({ side, task }): TaskPlan[] =>
      side === 'row' && stays.rows
        ? []
        : [
            {
              ...task,
              uses: { factors: `${side}s@here`, ...(adaptive ? { sums: `${side}-sums@here` } : {}) },
              params: { ...task.params, from: 0 },
              takes: { ...task.takes, to: side === 'row' ? 'rowCount' : 'width' },
              stage: `shrink-${side}s`,
              once: side,
            },
          ],
    );
    // Factors that lie in host memory are copied as they come.
    const copied = both.filter((name) => (name.startsWith('row') ? stays.rows : stays.columns));
    const order =
      deviceBlocks.resident && deviceBlocks.bandsADevice === undefined
        ? ({
            order: 'turns',
            ...(deviceBlocks.stays ? { stays: true } : {}),
            passes: rowBands > 1 ? both.filter((name) => name.startsWith('column')) : [],
          } as const)
        : ({ order: 'latin' } as const);
    return [
      ...copies(copied),
      ...shrinkStages.filter(({ name }) => name === 'shrink-rows' && stays.rows),
      {
        ...epoch,
        tasks: rowBands * columnBands,
        work: { kind: 'blocks', ...order, seed, grid, tasks: [...first, ...steps] },
      },
    ];
  }
  // A kernel that steps from one version to the next steps in place where its factors were shrunk.
  const inPlace = shrinking.length === 0 ? [] : [...copies(both), ...shrinkStages];
  const versions =
    shrinking.length === 0 ? { ...sources('@old'), ...used('') } : { ...sources(''), ...used('@here') };
  if (tile !== undefined) {
    const { tiles, threads } = tile;
    const task: TaskPlan = {
      kernel: 'sgd-tiles',
      uses: { block: 'ratings', ...versions },
      params: {
        ...step,
        tiles,
        lanes: tile.lanes,
        threads,
        precision: tile.precision,
        arithmetic: tile.arithmetic,
        seed,
      },
      takes: { rate: 'rate', epoch: 'epoch' },
    };
    return [
      ...inPlace,
      {
        ...epoch,
        tasks: 1,
        work: tasks(task),
        heldBytes: 8 * nz,
        reasons: [
          ...(epoch.reasons ?? []),
          'the first epoch deals the ratings to the tiles, where they stay',
        ],
      },
    ];
  }
  if (kind === 'hogwild') {
    const teams = device.ownMemory ? { lanes, workers, precision } : {};
    const task: TaskPlan = {
      kernel: 'sgd-block',
      uses: { block: 'list', order: 'order@old', ...used('@shared') },
      params: { ...step, ...teams, batch: BATCH_RATINGS },
      takes: { rate: 'rate' },
    };
    // The order of the next epoch is drawn while this one runs.
    return [
      ...copies(both),
      ...shrinkStages,
      {
        ...epoch,
        tasks: device.wholePasses ? 1 : Math.min(Math.ceil(nz / BATCH_RATINGS), TASKS_PER_WORKER * workers),
        work: tasks(task),
      },
      batchOrder(params, nz, host.place, { takes: 'next' }),
    ];
  }
  if (device.ownMemory) {
    const order: Stage = {
      name: 'wave-order',
      at: [host.place],
      work: tasks({
        kernel: 'wave-order',
        uses: { order: 'wave-order' },
        params: { seed, workers, columnBands },
        takes: { epoch: 'epoch' },
      }),
      kernel: 'wave-order',
      tasks: 1,
    };
    const task: TaskPlan = {
      kernel: 'sgd-waves',
      uses: { block: 'ratings', order: 'wave-order', ...versions },
      params: { ...step, lanes, precision },
      takes: { rate: 'rate' },
    };
    return [
      order,
      ...inPlace,
      {
        ...epoch,
        tasks: 1,
        work: tasks(task),
        heldBytes: 12 * nz,
        reasons: [...(epoch.reasons ?? []), 'the first epoch sorts the ratings by block, and they stay so'],
      },
    ];
  }
  const task: TaskPlan = {
    kernel: 'sgd-block',
    uses: { block: 'blocks', ...used('@here') },
    params: step,
    takes: { rate: 'rate', ...(schedule.inBands ? {} : { rowStart: 'rowFrom' }) },
  };
  return [
    ...copies(both),
    ...shrinkStages,
    {
      ...epoch,
      tasks: rowBands * columnBands,
      work: {
        kind: 'blocks',
        order: 'latin',
        seed,
        grid: { rows: rowBands, columns: columnBands, of: 'blocks' },
        tasks: [task],
      },
    },
  ];
}

/** The task that shrinks each side's factors in front of an epoch; none where nothing is to be shrunk. */
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
      uses: { factors: `${side}s`, ...(adaptive ? { sums: `${side}-sums` } : {}) },
      params: { offset, damping, adaptive, ...columns },
      takes: { rate: 'rate' },
    };
    return offset === 0 && damping === 0 ? [] : [{ side, task }];
  });
}

type Sides = { readonly row: 'users' | 'items'; readonly column: 'users' | 'items' };

/** Errors over all ratings, or over the block of each band; `at`: the place of each. */
function wholeErrors(
  { ratings, testRatings, ...profile }: RatingsProfile,
  rank: number,
  at: readonly string[],
  whole: boolean,
  sides: Sides,
  params: SgdParams,
): Stage[] {
  const rows = Math.max(profile.users, profile.items);
  const tasks = (count: number) => (whole ? 1 : taskCount(count));
  const errors = (name: string, block: string, count: number): Stage => ({
    name,
    at,
    work: {
      kind: 'tasks',
      tasks: [
        {
          kernel: 'squared-error',
          uses: { block, rowFactors: 'rows', columnFactors: 'columns' },
          params: { rank },
        },
      ],
    },
    kernel: 'squared-error',
    tasks: tasks(count),
    bytesRead: blockBytes(rows, count),
    flops: 2 * count * rank,
  });
  const norm = (side: 'row' | 'column', block: string, factors: string): Stage[] =>
    normsOf(params, side, sides).map((of) => ({
      name: measureStages[sides[side]],
      at: side === 'row' ? at : at.slice(0, 1),
      work: {
        kind: 'tasks',
        tasks: [{ kernel: 'weighted-norm', uses: { block, factors }, params: { rank, ...of } }],
      },
      kernel: 'weighted-norm',
      tasks: tasks(ratings),
    }));
  return [
    errors(measureStages.train, 'ratings', ratings),
    ...norm('row', 'ratings', 'rows'),
    ...norm('column', 'column-counts', 'columns'),
    ...(testRatings === undefined ? [] : [errors(measureStages.test, 'tests', testRatings)]),
  ];
}

/** Parameters of the task that measures a side's part of the penalty; none where it has none. */
function normsOf(params: SgdParams, side: 'row' | 'column', sides: Sides): JsonObject[] {
  if (!shrinks(params, sides[side])) return lambdasOf(params)[sides[side]] === 0 ? [] : [{}];
  const { offset, damping } = shrinkOf(params)[sides[side]];
  if (!params.biases) return [{ plainWeights: [offset, offset, offset] }];
  return [
    { plainWeights: biasColumns(side === 'row').own === 0 ? [damping, 0, offset] : [0, damping, offset] },
  ];
}

/**
 * A sweep over the blocks in which any device may read any segment. The first that reads a segment measures
 * its norm too.
 */
function blockErrors(
  { rowBands: rows, columnBands: columns, deviceBlocks }: SgdSchedule,
  { ratings, testRatings }: RatingsProfile,
  rank: number,
  at: readonly string[],
  sides: Sides,
  params: SgdParams,
): Stage[] {
  const sweep = (name: string, of: string, count: number, more: readonly TaskPlan[]): Stage => ({
    name,
    at,
    work: {
      kind: 'blocks',
      order: 'rotated',
      seed: params.seed,
      grid: { rows, columns, of },
      tasks: [
        {
          kernel: 'squared-error',
          uses: { block: of, rowFactors: 'rows', columnFactors: 'columns' },
          params: { rank, from: 0 },
          takes: { to: 'rowCount' },
        },
        ...more,
      ],
    },
    kernel: 'squared-error',
    tasks: rows * columns,
    partitions: { p: columns, q: rows },
    flops: 2 * count * rank,
  });
  const norm = (side: 'row' | 'column', to: TaskPlan): TaskPlan[] =>
    normsOf(params, side, sides).map((of) => ({
      ...to,
      params: { ...to.params, ...of },
      stage: measureStages[sides[side]],
      once: side,
    }));
  const share: Stage[] =
    deviceBlocks?.resident && deviceBlocks.bandsADevice === undefined && rows > 1
      ? [
          {
            name: 'share-columns',
            at,
            work: { kind: 'exchange', how: 'share', data: ['columns'] },
            exchange: 'by turns',
          },
        ]
      : [];
  return [
    ...share,
    sweep(measureStages.train, 'blocks', ratings, [
      ...norm('row', {
        kernel: 'weighted-norm',
        uses: { block: 'row-counts', factors: 'rows' },
        params: { rank, from: 0 },
        takes: { to: 'rowCount' },
      }),
      ...norm('column', {
        kernel: 'weighted-norm',
        uses: { block: 'column-counts', factors: 'columns' },
        params: { rank, from: 0 },
        takes: { to: 'width' },
      }),
    ]),
    ...(testRatings === undefined ? [] : [sweep(measureStages.test, 'tests', testRatings, [])]),
  ];
}
