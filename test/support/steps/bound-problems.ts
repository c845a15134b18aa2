import * as fc from 'fast-check';
import type { PartitionRef } from '../../../engine/partition.ts';
import { type BoundPlan, type KeptVersions, keptOf } from '../../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { expand, expandFree } from '../../../engine/run/expand.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import type { Step } from '../../../engine/run/step.ts';
import { sizedParams, type AlsParams } from '../../../operators/als/als-params.ts';
import { bindAls } from '../../../operators/als/bind.ts';
import { rowShifts } from '../../../operators/als/implicit/weights.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import type { AlsGrid, SideGrid } from '../../../operators/als/plan/problem.ts';
import {
  ofParts,
  oneBlock,
  type RatingBlock,
  type Ratings,
  ratingsOf,
  rowsOfBlock,
} from '../../../operators/ratings/ratings.ts';
import { balancedRanges, taskCount } from '../../../operators/ratings/row-ranges.ts';
import { bindSgd } from '../../../operators/sgd/bind.ts';
import { layOut } from '../../../operators/sgd/data/layout.ts';
import { checkSgdParams, type SgdParams } from '../../../operators/sgd/params.ts';
import { planSgd, scheduleOf } from '../../../operators/sgd/plan.ts';
import type { SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';
import { RecordingDevice } from './recording-device.ts';
import { alsProblem, blockOfRows, contextOf, cpuInfo, gpuInfo, sgdProblem } from './small-problems.ts';

export interface BoundProblem {
  readonly plan: PhysicalPlan;
  readonly bound: BoundPlan;
  readonly given: readonly PartitionRef[];
  readonly keep: KeptVersions;
}

export interface ProblemShape {
  readonly rows: readonly (readonly number[])[];
  readonly columns: number;
  readonly test: boolean;
  readonly devices: readonly DeviceInfo[];
}

export function boundAls(
  { rows, columns, test, devices }: ProblemShape,
  given: Partial<AlsParams>,
  grid?: AlsGrid,
): BoundProblem {
  const drawn = alsProblem(rows, columns, test ? rows : undefined);
  const params = sizedParams(checkAlsParams({ biases: false, ...given }), {
    users: rows.length,
    items: columns,
    ratings: drawn.byUser.ratings,
  });
  const shifts = params.implicitPrefs
    ? {
        shifts: {
          users: rowShifts(oneBlock(drawn.byUser), columns, params),
          items: rowShifts(oneBlock(drawn.byItem), rows.length, params),
        },
      }
    : {};
  const totals = params.biases && !params.implicitPrefs ? { totals: new Float32Array(columns) } : {};
  const data = {
    ...drawn,
    ...shifts,
    ...totals,
    byUser: homeOf(oneBlock(drawn.byUser), grid?.users),
    byItem: homeOf(oneBlock(drawn.byItem), grid?.items),
  };
  const { ratings } = data.byUser;
  const plan = planAls(
    { users: rows.length, items: columns, ratings, ...(test ? { testRatings: ratings } : {}) },
    params,
    { compute: devices, host: hostOf(devices) },
    undefined,
    { grid },
  );
  const made = bindAls(plan, data, { biases: params.biases, mean: 0, offset: 0, unit: 1 });
  const inFiles = [data.byUser, data.byItem].flatMap(({ parts }) =>
    parts.flatMap(({ ref, blocks }) => (blocks ? [] : [ref])),
  );
  return {
    plan: made.plan,
    bound: made.bound,
    given: [...made.given.map(([ref]) => ref), ...inFiles],
    keep: made.plan.keep,
  };
}

/** A block in memory, or parts in files. */
function homeOf(block: RatingBlock, side?: SideGrid): Ratings {
  if (side?.ratings !== 'spill') return ratingsOf(block);
  const parts = balancedRanges(block.offsets, side.q, undefined, { exactly: true }).map(
    ({ from, to }, partition) => {
      const { ref, rows, ratings, offsets } = rowsOfBlock(block, from, to, {
        name: `${block.ref.name}/files`,
        partition,
        version: 0,
      });
      return { ref, from, rows, ratings, offsets, slices: balancedRanges(offsets, taskCount(ratings)) };
    },
  );
  return ofParts(parts);
}

export async function boundSgd(
  { rows, columns, test, devices }: ProblemShape,
  given: Partial<SgdParams>,
  change: (schedule: SgdSchedule) => SgdSchedule = (schedule) => schedule,
): Promise<BoundProblem> {
  const params = checkSgdParams({ biases: false, ...given });
  const data = sgdProblem(rows, columns);
  const profile = {
    users: rows.length,
    items: columns,
    ratings: data.ratings.ratings,
    ...(test ? { testRatings: data.ratings.ratings } : {}),
  };
  const planOn = { compute: devices, host: hostOf(devices) };
  const plan = planSgd(profile, params, planOn, {
    schedule: change(scheduleOf(planSgd(profile, params, planOn))),
  });
  const tests = test ? blockOfRows(rows, 'tests') : undefined;
  const executor = new LocalExecutor([new RecordingDevice(hostOf(devices))]);
  for (const block of [oneBlock(data.ratings), ...(tests ? [tests] : [])])
    executor.devices[0].put(block.ref, {
      layout: 'rating-block',
      rows: block.rows,
      columns: { offsets: block.offsets, indices: block.indices, values: block.values },
    });
  const laid = await layOut(
    data,
    { test: tests, schedule: scheduleOf(plan), seed: params.seed },
    contextOf(executor),
  );
  const made = bindSgd(plan, params, data, laid);
  return { plan: made.plan, bound: made.bound, given: made.given.map(([ref]) => ref), keep: made.plan.keep };
}

function hostOf(devices: readonly DeviceInfo[]): DeviceInfo {
  return devices.find(({ place }) => place === 'cpu') ?? cpuInfo;
}

/**
 * The lists of a run in which `fate` says of each round whether it is the best so far, one among others, or
 * has diverged and is run again. The last frees what is left.
 */
export function listsOfRun(
  { bound, keep }: BoundProblem,
  fates: readonly ('best' | 'good' | 'diverged')[],
): { readonly name: string; readonly steps: readonly Step[] }[] {
  const start = expand(bound, contracts, 'start', {});
  const lists = [{ name: 'start', steps: start.steps }];
  let [good, best, bestRound] = [start.versions, start.versions, 0];
  let number = 1;
  for (const fate of fates) {
    const kept = keptOf(keep, good, best);
    const round = expand(
      bound,
      contracts,
      'round',
      good,
      { number, params: { rate: 0.1, epoch: number, next: number + 1 } },
      kept,
    );
    lists.push(
      { name: `round ${number}`, steps: round.steps },
      {
        name: `measure ${number}`,
        steps: expand(bound, contracts, 'measure', round.versions, { number }).steps,
      },
    );
    if (fate === 'diverged' && keep.start) {
      lists.push({ name: 'free', steps: expandFree(bound, contracts, 'free', round.versions, kept) });
      continue;
    }
    good = round.versions;
    if (fate === 'best' || !keep.best) [best, bestRound] = [good, number];
    for (const old of kept)
      lists.push({ name: 'free', steps: expandFree(bound, contracts, 'free', old, [good, best]) });
    number++;
  }
  lists.push({ name: 'end', steps: expand(bound, contracts, 'end', best, { number: bestRound }).steps });
  lists.push({
    name: 'last',
    steps: expandFree(bound, contracts, 'free', good, good === best ? [] : [best]),
  });
  if (good !== best) lists.push({ name: 'last', steps: expandFree(bound, contracts, 'free', best, []) });
  return lists;
}

const gpus = fc
  .integer({ min: 1, max: 4 })
  .chain((count) =>
    fc
      .record({ inOrder: fc.boolean(), wholePasses: fc.boolean(), ownMemory: fc.constant(true) })
      .map((more) => Array.from({ length: count }, (_, n) => gpuInfo(n, more))),
  );

export const shapes: fc.Arbitrary<ProblemShape> = fc
  .record({
    users: fc.integer({ min: 1, max: 14 }),
    columns: fc.integer({ min: 1, max: 9 }),
    test: fc.boolean(),
    devices: fc.oneof(fc.constant([cpuInfo]), gpus),
  })
  .chain(({ users, columns, ...more }) =>
    fc
      .array(
        fc
          .uniqueArray(fc.integer({ min: 0, max: columns - 1 }), { maxLength: columns })
          .map((row) => row.sort((left, right) => left - right)),
        { minLength: Math.max(users, columns), maxLength: Math.max(users, columns) },
      )
      .filter((rows) => rows.some((row) => row.length > 0))
      .map((rows) => ({ rows, columns, ...more })),
  );

/** The grids that a problem of this shape may have; grids with `parts` solve a side from vertical parts. */
export function gridsOf({ rows, columns }: ProblemShape): fc.Arbitrary<AlsGrid> {
  const side = (count: number) =>
    fc
      .record({
        q: fc.integer({ min: 1, max: Math.min(4, count) }),
        fixed: fc.constantFrom(
          ['whole', 'device'] as const,
          ['parts', 'device'] as const,
          ['parts', 'host'] as const,
        ),
        ratings: fc.constantFrom('device' as const, 'host' as const),
      })
      .map(({ fixed: [fixed, factors], ...more }) => ({ ...more, fixed, factors }));
  // Files have parts of rows, not blocks.
  const inFiles = ({ users, items }: AlsGrid): AlsGrid => ({
    users: { ...users, ratings: 'spill', fixed: 'whole', factors: 'device' },
    items: { ...items, ratings: 'spill', fixed: 'whole', factors: 'device' },
  });
  // Rows that every device solves for itself belong to sides that are whole on the devices.
  const isWhole = (one: SideGrid) => one.fixed === 'whole' && one.ratings === 'device';
  const withCommon = ({ users, items }: AlsGrid, common: number): AlsGrid => {
    const add = (one: SideGrid) =>
      common > 0 && one.q > 1 && isWhole(users) && isWhole(items) ? { ...one, common } : one;
    return { users: add(users), items: add(items) };
  };
  const commons = fc.constantFrom(0, 0, 0.1, 0.5, 0.9);
  const byVectors = ({ users, items }: AlsGrid, [ofUsers, ofItems]: readonly [boolean, boolean]): AlsGrid => {
    const add = (one: SideGrid, vectors: boolean) =>
      vectors && users.factors === 'device' && items.factors === 'device'
        ? { ...one, sums: 'vectors' as const }
        : one;
    return { users: add(users, ofUsers), items: add(items, ofItems) };
  };
  return fc
    .tuple(
      fc.record({ users: side(rows.length), items: side(columns) }),
      fc.boolean(),
      commons,
      fc.tuple(fc.boolean(), fc.boolean()),
    )
    .map(([grid, spilled, common, vectors]) =>
      byVectors(spilled ? inFiles(grid) : withCommon(grid, common), vectors),
    );
}

export const fates = fc.array(fc.constantFrom('best' as const, 'good' as const, 'diverged' as const), {
  minLength: 1,
  maxLength: 6,
});
