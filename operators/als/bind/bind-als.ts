import type { JsonObject } from '../../../engine/json.ts';
import { dataSetName, type PartitionRef } from '../../../engine/partition.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { RowRange, Stage } from '../../../engine/plan/stages.ts';
import { hostForm, lengthsOfBlock, type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { balancedRanges } from '../../ratings/row-ranges.ts';
import { type BlockInFile, type ColumnCut, cutColumns } from '../../ratings/sorting/columns-of-block.ts';
import {
  oneBlock,
  partOfBlock,
  type RatedRows,
  type Ratings,
  ratingsOf,
  soleBlock,
} from '../../ratings/ratings.ts';
import { type BoundRun, bindPlan, cutKeys, cutRows, type GivenPart } from '../../training/bind-plan.ts';
import { type AlsDataSet, alsDataSets, type GivenRole } from '../plan/data-sets.ts';
import {
  type AlsGrid,
  isInBlocks,
  otherSide,
  sharesOfParts,
  type Side,
  type SideGrid,
} from '../plan/grid.ts';
import { type AlsProblem, problemOf, sideNames } from '../plan/problem.ts';
import { startNorm } from '../rating-unit.ts';
import type { AlsData, AlsStart, BoundParams, FactorValues } from './als-data.ts';
import { alsSlices, type SideBlocks } from './slices.ts';
import { givenFactors, startFrom } from './start.ts';

/** Prefix of the names of a training's partitions. */
export const ALS = 'als';

export interface BoundAls extends BoundRun {
  /**
   * Blocks of ratings that the plan uses but that are still empty: placeColumns must fill them before the
   * first step.
   */
  readonly columnCuts: readonly ColumnCut[];
}

/** The row range of each part of both sides. */
type Cuts = Readonly<Record<Side, readonly RowRange[]>>;

/**
 * Binds a plan, which was made from estimated sizes, to sorted ratings. Each side is cut into the plan's
 * number of parts, with about equal numbers of ratings. If a side is solved from vertical parts of the other
 * side, its ratings are also cut into blocks by columns. For every pass, each part or block is cut into
 * slices, the row ranges of its tasks.
 */
export function bindAls(
  planned: PhysicalPlan,
  data: AlsData,
  params: BoundParams,
  start?: AlsStart<FactorValues>,
): BoundAls {
  const problem = problemOf(planned);
  const { grid } = problem;
  const cuts = cutsOf(grid, data);
  const name = start?.name ?? dataSetName(ALS);
  const columnCuts: ColumnCut[] = [];
  const blocksOf = (set: string, side: Side, whole: Ratings) =>
    sideBlocks(problem, side, whole, { name: `${name}/${set}`, cuts, columnCuts });
  const ratingsOfSide = (side: Side, whole: Ratings): SideBlocks => {
    const inFiles = data.blocks?.[side];
    if (inFiles !== undefined) return { parts: whole.parts, blocks: inFiles };
    return blocksOf(sideNames(side, problem).ratings, side, whole);
  };
  const ratings = {
    users: ratingsOfSide('users', data.byUser),
    items: ratingsOfSide('items', data.byItem),
  };
  const tests =
    data.test && problem.testRatings !== undefined
      ? blocksOf('test-ratings', 'users', ratingsOf(data.test)).blocks
      : undefined;
  const lengths = (side: Side) => cuts[side].map(({ from, to }) => to - from);
  const datasets = alsDataSets(problem, {
    rows: { users: lengths('users'), items: lengths('items') },
    ratings: { users: ratings.users.blocks, items: ratings.items.blocks },
    tests,
  });
  const bound = bindPlan(planned, {
    name,
    datasets,
    partsOf: givenParts({ data, start }, name, cuts, { ratings, tests }),
    slices: alsSlices(problem, ratings, tests ?? []),
    stageOf: (stage) => withRatings(stage, params),
    startOf: start && startFrom,
  });
  const factors = start === undefined ? [] : givenFactors(bound.bound, start, cuts);
  return { ...bound, given: [...bound.given, ...factors], columnCuts };
}

/**
 * Cuts the ratings sorted by a side into the plan's parts, and also by columns into blocks if the plan has
 * blocks. Ratings that are already in parts are not cut by rows again.
 */
function sideBlocks(
  { grid }: AlsProblem,
  side: Side,
  whole: Ratings,
  {
    name,
    cuts,
    columnCuts,
  }: { readonly name: string; readonly cuts: Cuts; readonly columnCuts: ColumnCut[] },
): SideBlocks & { readonly blocks: readonly RatedRows[] } {
  const [rows, columns] = [cuts[side], cuts[otherSide[side]]];
  const ref = (partition: number): PartitionRef => ({ name, partition, version: 0 });
  const blocksOf = (part: RatingBlock, j: number) => {
    const cut = cutColumns(part, columns, (i) => ref(j * columns.length + i));
    columnCuts.push(cut);
    return cut.blocks;
  };
  const parts =
    rows.length === whole.parts.length
      ? whole.parts
      : rows.map(({ from, to }, partition) =>
          partOfBlock(from, rowsOfBlock(oneBlock(whole), from, to, ref(partition))),
        );
  const blocks = parts.flatMap(({ blocks: own = [] }, j): readonly RatingBlock[] =>
    own.length === 1 && isInBlocks(grid, side) ? blocksOf(own[0].block, j) : own.map(({ block }) => block),
  );
  return { parts, blocks: blocks.length === 0 ? parts : blocks };
}

/** Returns a function that gives the partitions of a data set that exists before the first step. */
function givenParts(
  { data, start }: { readonly data: AlsData; readonly start: AlsStart<FactorValues> | undefined },
  name: string,
  cuts: Cuts,
  {
    ratings,
    tests = [],
  }: {
    readonly ratings: Readonly<Record<Side, SideBlocks>>;
    readonly tests?: readonly RatedRows[] | undefined;
  },
): (set: AlsDataSet) => GivenPart[] {
  const held = (blocks: readonly (RatedRows | RatingBlock | BlockInFile)[]) =>
    blocks.map((block) =>
      'indices' in block ? { ref: block.ref, partition: hostForm(block) } : { ref: block.ref },
    );
  const ref = (set: string, partition: number) => ({ name: `${name}/${set}`, partition, version: 0 });
  const cut = ({ name: set, layout, side }: AlsDataSet, values: Float32Array = new Float32Array(0)) =>
    cutRows(`${name}/${set}`, cuts[side], layout, { values });
  const parts: Readonly<Record<GivenRole, (set: AlsDataSet) => GivenPart[]>> = {
    ratings: ({ side }) => held(ratings[side].blocks),
    tests: () => held(tests),
    lengths: ({ name: set, side }) =>
      held(ratings[side].parts.map((part, partition) => lengthsOfBlock(part, ref(set, partition)))),
    totals: (set) => cut(set, data.totals),
    shifts: (set) => cut(set, data.shifts?.[set.side]),
    keys: ({ side }) => cutKeys(`${name}/keys`, cuts[side], start === undefined ? data.users : undefined),
  };
  return (set) => parts[set.role as GivenRole](set);
}

/** The row ranges of the parts of both sides. */
export function cutsOf(grid: AlsGrid, { byUser, byItem }: Pick<AlsData, 'byUser' | 'byItem'>): Cuts {
  return { users: cutOf(byUser, grid.users), items: cutOf(byItem, grid.items) };
}

/**
 * The row ranges of a side's parts. If its ratings are already in parts, these are used; otherwise they are
 * cut into the plan's number of parts, with about equal numbers of ratings.
 */
function cutOf(ratings: Ratings, grid: SideGrid): RowRange[] {
  const { q } = grid;
  const block = soleBlock(ratings);
  if (block !== undefined)
    return balancedRanges(block.offsets, q, undefined, { exactly: true, shares: sharesOfParts(grid) });
  if (ratings.parts.length !== q)
    throw new Error(`the plan has ${q} parts, and the ratings ${ratings.parts.length}`);
  return ratings.parts.map(({ from, rows }) => ({ from, to: from + rows }));
}

/** Adds the task parameters that depend on the ratings, such as their mean, to a stage. */
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
