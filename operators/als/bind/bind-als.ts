import { keyHashes } from '../../../engine/keys/key-hash.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { dataSetName, type PartitionRef } from '../../../engine/partition.ts';
import type { BoundPlan } from '../../../engine/plan/bound-plan.ts';
import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import type { RowRange, Slice, Stage } from '../../../engine/plan/stages.ts';
import type { Given } from '../../../engine/run/run-steps.ts';
import { peakOf } from '../../../engine/run/walk.ts';
import { lengthsOfBlock, type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { balancedRanges } from '../../ratings/row-ranges.ts';
import { type ColumnCut, cutColumns } from '../../ratings/sorting/columns-of-block.ts';
import { isInParts, type SortedRatings } from '../../ratings/spilled-ratings.ts';
import { contracts, type Tiling } from '../../tasks/tasks.ts';
import { implicitNames, TEST_PLACES } from '../implicit/stages.ts';
import {
  gridOf,
  isInBlocks,
  otherSide,
  sharesOfParts,
  type Side,
  type SideGrid,
  sides,
} from '../plan/grid.ts';
import { vectorNames } from '../plan/vectors.ts';
import { startNorm } from '../rating-unit.ts';
import type { Tiled } from '../tiles.ts';
import type { AlsData, AlsStart, BoundParams } from './als-data.ts';
import { BoundSets } from './bound-sets.ts';
import { alsSlices, type SideBlocks } from './slices.ts';
import { givenFactors, startFrom } from './start.ts';

/** The first part of the names of a training's partitions. */
export const ALS = 'als';

export interface BoundAls {
  /** The plan with the cuts and the counts of the data. */
  readonly plan: PhysicalPlan;
  readonly bound: BoundPlan;
  readonly given: readonly Given[];
  /** Given blocks that placeColumns has to fill before they are used. */
  readonly columnCuts: readonly ColumnCut[];
}

/**
 * Binds a plan to sorted ratings: each side is cut by its ratings into as many parts as the plan has, the
 * ratings of a side that is solved from vertical parts into blocks, and each pass over a part or block into
 * slices.
 *
 */
export function bindAls(
  planned: PhysicalPlan,
  data: AlsData,
  params: BoundParams,
  start?: AlsStart,
): BoundAls {
  const grid = gridOf(planned);
  const cuts = { users: cutOf(data.byUser, grid.users), items: cutOf(data.byItem, grid.items) };
  const name = start?.name ?? dataSetName(ALS);
  const sets = new BoundSets(planned);
  const columnCuts: ColumnCut[] = [];
  const giveRatings = (set: string, side: Side, whole: SortedRatings): SideBlocks => {
    const [rows, columns] = [cuts[side], cuts[otherSide[side]]];
    const ref = (partition: number): PartitionRef => ({ name: `${name}/${set}`, partition, version: 0 });
    const blocksOf = (part: RatingBlock, j: number) => {
      const cut = cutColumns(part, columns, (i) => ref(j * columns.length + i));
      columnCuts.push(cut);
      return cut.blocks;
    };
    if (isInParts(whole)) {
      const blocks = whole.parts.flatMap(({ blocks: own = [] }, j): readonly RatingBlock[] =>
        own.length === 1 && isInBlocks(grid, side)
          ? blocksOf(own[0].block, j)
          : own.map(({ block }) => block),
      );
      if (blocks.length === 0) sets.name(set, whole.parts);
      else sets.giveBlocks(set, blocks);
      return { parts: whole.parts, blocks: blocks.length === 0 ? whole.parts : blocks };
    }
    const parts =
      rows.length === 1
        ? [whole]
        : rows.map(({ from, to }, partition) => rowsOfBlock(whole, from, to, ref(partition)));
    const blocks = isInBlocks(grid, side) ? parts.flatMap(blocksOf) : parts;
    sets.giveBlocks(set, blocks);
    return { parts, blocks };
  };
  const ratings = {
    users: giveRatings('ratings-by-user', 'users', data.byUser),
    items: giveRatings('ratings-by-item', 'items', data.byItem),
  };
  const tests =
    data.test && sets.has('test-ratings') ? giveRatings('test-ratings', 'users', data.test).blocks : [];
  sets.setParts(TEST_PLACES, (j) => ({ rows: tests[j].ratings, bytes: 4 * tests[j].ratings }));
  const rowsOf = (side: Side, j: number) => cuts[side][j].to - cuts[side][j].from;
  const giveRows = (
    set: string,
    side: Side,
    layout: string,
    bytes: number,
    columns: (range: RowRange) => Readonly<Record<string, Float32Array | Uint32Array>>,
    called = set,
  ) =>
    sets.give(
      set,
      cuts[side].map((range, partition) => ({
        ref: { name: `${name}/${called}`, partition, version: 0 },
        partition: { layout, rows: rowsOf(side, partition), columns: columns(range) },
        bytes: bytes * rowsOf(side, partition),
      })),
    );
  for (const side of sides) {
    const shifts = data.shifts?.[side];
    if (shifts !== undefined)
      giveRows(implicitNames(side).shifts, side, 'row-shifts', 4, ({ from, to }) => ({
        values: shifts.subarray(from, to),
      }));
    const { totals } = data;
    if (totals !== undefined && sets.has(`${side}-totals`))
      giveRows(`${side}-totals`, side, 'row-totals', 4, ({ from, to }) => ({
        values: totals.subarray(from, to),
      }));
    if (sets.has(`${side}-lengths`))
      sets.giveBlocks(
        `${side}-lengths`,
        ratings[side].parts.map((part, partition) =>
          lengthsOfBlock(part, { name: `${name}/${side}-lengths`, partition, version: 0 }),
        ),
      );
    const vectors = vectorNames(side);
    for (const set of [
      side,
      `${side}-bias`,
      `${side}-equations`,
      vectors.gradients,
      vectors.direction,
      vectors.products,
    ])
      sets.setParts(set, (j) => ({ rows: rowsOf(side, j) }));
    for (const set of [
      `${side}-partials`,
      vectors.allGradients,
      vectors.allDirections,
      vectors.allProducts,
    ]) {
      const sharing =
        (planned.datasets.find(({ name: one }) => one === set)?.parts.length ?? 0) / grid[side].q;
      sets.setParts(set, (k) => ({ rows: rowsOf(side, Math.floor(k / sharing)) }));
    }
  }
  // A given start needs no keys.
  const { low, high } =
    start === undefined ? keyHashes(data.users) : { low: new Uint32Array(0), high: new Uint32Array(0) };
  giveRows(
    'users-keys',
    'users',
    'key-hashes',
    8,
    ({ from, to }) => ({ low: low.subarray(from, to), high: high.subarray(from, to) }),
    'keys',
  );
  const computing = stageNamed(planned, 'place-ratings').at;
  const { wholePasses: whole, parallelism } = planned.devices.find(({ place }) => place === computing[0])!;
  const tiled = (side: Side, { rows }: SortedRatings): Tiled => ({
    tiling: tilingIn(planned, side),
    fixedRows: rows,
    parallelism,
  });
  const tilings = { users: tiled('users', data.byItem), items: tiled('items', data.byUser) };
  const slices = alsSlices(ratings, tests, {
    grid,
    devices: computing.length,
    rank: Number(planned.params.rank),
    implicit: data.shifts !== undefined,
    whole,
    tilings,
  });
  const stages = (list: readonly Stage[]) => list.map((stage) => counted(withRatings(stage, params), slices));
  const plan: PhysicalPlan = {
    ...planned,
    datasets: sets.datasets,
    start: stages(planned.start),
    round: stages(planned.round),
    measure: stages(planned.measure),
  };
  const phases = {
    start: start === undefined ? plan.start : startFrom(plan),
    round: plan.round,
    measure: plan.measure,
    end: plan.end,
  };
  const bound: BoundPlan = {
    name,
    devices: plan.devices,
    datasets: plan.datasets,
    phases,
    given: sets.refs,
    slices,
    ...(plan.measureBytes ? { measureBytes: plan.measureBytes } : {}),
  };
  return {
    plan: withRealCuts(plan, bound),
    bound,
    columnCuts,
    given: start === undefined ? sets.given : [...sets.given, ...givenFactors(bound, start, cuts)],
  };
}

/** The plan with the memory of its real cuts: parts of as many ratings have unlike numbers of rows. */
function withRealCuts(plan: PhysicalPlan, bound: BoundPlan): PhysicalPlan {
  if (plan.datasets.every(({ parts }) => parts.length === 1)) return plan;
  const peak = peakOf(bound, contracts, plan.keep);
  return {
    ...plan,
    memory: { ...plan.memory, ...peak, [HOST]: Math.max(plan.memory[HOST] ?? 0, peak[HOST] ?? 0) },
  };
}

/**
 * The parts of a side: those that its ratings have already, else as many as the plan has, balanced by
 * ratings.
 */
function cutOf(ratings: SortedRatings, grid: SideGrid): RowRange[] {
  const { q } = grid;
  if (!isInParts(ratings))
    return balancedRanges(ratings.offsets, q, undefined, { exactly: true, shares: sharesOfParts(grid) });
  if (ratings.parts.length !== q)
    throw new Error(`the plan has ${q} parts, and the ratings ${ratings.parts.length}`);
  return ratings.parts.map(({ from, rows }) => ({ from, to: from + rows }));
}

/** The tiling of the tasks that solve a side's rows. */
function tilingIn({ round }: PhysicalPlan, side: Side): Tiling | undefined {
  const work = round.find(({ name }) => name === `update-${side}`)?.work;
  return work?.kind === 'tasks'
    ? (work.tasks.map(({ params }) => params?.tiled).find((tiled) => tiled !== undefined) as
        | Tiling
        | undefined)
    : undefined;
}

function counted(stage: Stage, slices: Readonly<Record<string, readonly (readonly Slice[])[]>>): Stage {
  const own = slices[stage.name];
  return own === undefined ? stage : { ...stage, tasks: Math.max(...own.map((ranges) => ranges.length)) };
}

/** The stage with the parameters of its tasks that depend on the ratings. */
function withRatings(stage: Stage, { biases, mean, offset, unit }: BoundParams): Stage {
  const { work } = stage;
  if (work.kind !== 'tasks' && work.kind !== 'blocks') return stage;
  const ofMean = (): JsonObject => (biases ? { mean } : {});
  const ofPenalty = ({ lambda }: JsonObject): JsonObject => ({
    ...(offset === 0 ? {} : { offset }),
    ...(unit === 1 ? {} : { lambda: (lambda as number) / unit, ...(biases ? { biasLambda: lambda } : {}) }),
  });
  const more: Readonly<Record<string, (params: JsonObject) => JsonObject>> = {
    initialize: ({ nonnegative }) => (unit === 1 || nonnegative ? {} : { norm: startNorm(unit) }),
    update: (params) => ({ ...ofMean(), ...ofPenalty(params) }),
    'normal-equations': ofMean,
    'solve-equations': ofPenalty,
    'add-residuals': ofMean,
    'begin-gradients': ofPenalty,
    'step-gradients': ofPenalty,
    'end-gradients': ofPenalty,
    'squared-error': ofMean,
  };
  return {
    ...stage,
    work: {
      ...work,
      tasks: work.tasks.map((task) => ({
        ...task,
        params: { ...task.params, ...more[task.kernel]?.(task.params ?? {}) },
      })),
    },
  };
}
