import type { JsonObject } from '../../engine/json.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { type BoundPlan, dataSetOf, partRef } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { RowRange, Slice, TaskPlan } from '../../engine/plan/stages.ts';
import type { Given } from '../../engine/run/run-steps.ts';
import {
  hostForm,
  lengthsOfBlock,
  type RatingBlock,
  rowsOfBlock,
  oneBlock,
  partOfBlock,
  type RatedRows,
  type Ratings,
  ratingsOf,
  soleBlock,
} from '../ratings/ratings.ts';
import { balancedRanges, evenRanges, taskCount } from '../ratings/row-ranges.ts';
import { type BlockInFile, type ColumnCut, cutColumns } from '../ratings/sorting/columns-of-block.ts';
import {
  bindPlan,
  type BoundRun,
  cutKeys,
  cutRows,
  type GivenPart,
  startFromHost,
} from '../training/bind-plan.ts';
import { measureStages } from '../training/loss.ts';
import type { AlsData, AlsStart, BoundParams, FactorValues } from './factors.ts';
import { gramSlices, implicitStages, rankSlices } from './implicit/stages.ts';
import { attributeSlices, targetsOf } from './plan/attribute-stages.ts';
import { alsDataSets } from './plan/data-sets.ts';
import { placesOfFixedParts, equationVectorStages } from './plan/parted-side.ts';
import {
  type AlsDataSet,
  type AlsGrid,
  type GivenRole,
  hasGramOfParts,
  isInBlocks,
  otherSide,
  sharesOfParts,
  type Side,
  type SideGrid,
  sides,
  stepsEverywhere,
  sumsOf,
  type AlsProblem,
  problemOf,
  sideNames,
} from './plan/problem.ts';
import { startNorm } from './rating-unit.ts';
import { tiledSlices, tilingOf } from './tiles.ts';

/** Prefix of the names of a training's partitions. */
export const ALS = 'als';

interface BoundAls extends BoundRun {
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
  const attributes = sides.map((side) => attributeSlices(problem, side, cuts[side], data.attributes?.[side]));
  const bound = bindPlan(planned, {
    name,
    datasets,
    partsOf: givenParts({ data, start }, name, cuts, { ratings, tests }),
    slices: Object.assign(alsSlices(problem, ratings, tests ?? []), ...attributes) as BoundPlan['slices'],
    taskOf: (task) => ({ ...task, params: { ...task.params, ...ratingParams(task, params) } }),
    startOf:
      start &&
      ((plan) =>
        startFromHost(
          plan,
          plan.datasets.filter(({ given, derived }) => !given && !derived).map((set) => set.name),
        )),
  });
  const factors = start === undefined ? [] : givenFactors(problem, bound.bound, start, cuts);
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
  const cut = (
    { name: set, layout, side }: AlsDataSet,
    values: Float32Array | Uint8Array = new Float32Array(0),
  ) => cutRows(`${name}/${set}`, cuts[side], layout, { values });
  const parts: Readonly<Record<GivenRole, (set: AlsDataSet) => GivenPart[]>> = {
    ratings: ({ side }) => held(ratings[side].blocks),
    tests: () => held(tests),
    lengths: ({ name: set, side }) =>
      held(ratings[side].parts.map((part, partition) => lengthsOfBlock(part, ref(set, partition)))),
    totals: (set) => cut(set, data.totals),
    shifts: (set) => cut(set, data.shifts?.[set.side]),
    anchors: (set) => cut(set, data.anchors?.[set.side]),
    weights: ({ name: set, side, layout, parts: [{ rows }] }) =>
      data.shifts
        ? cutRows(`${name}/${set}`, [{ from: 0, to: rows }], layout, { values: data.shifts[side] })
        : held([lengthsOfBlock(oneBlock(side === 'users' ? data.byUser : data.byItem), ref(set, 0))]),
    attributes: ({ side }) => held(data.attributes?.[side] ? [data.attributes[side]] : []),
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

/** Tasks that take the mean of the ratings, and tasks that take λ and the offset. */
const OF_MEAN = ['update', 'normal-equations', 'add-residuals', 'squared-error'];
const OF_PENALTY = [
  'update',
  'solve-equations',
  'begin-gradients',
  'step-gradients',
  'end-gradients',
  'fit-coefficients',
];

/** The parameters of a task that depend on the ratings. */
function ratingParams(
  { kernel, uses, params: { lambda, nonnegative, ridge } = {} }: TaskPlan,
  { biases, mean, offset, unit }: BoundParams,
): JsonObject {
  if (kernel === 'initialize') return unit === 1 || nonnegative ? {} : { norm: startNorm(unit) };
  const isScaled = OF_PENALTY.includes(kernel) && unit !== 1;
  return {
    ...(OF_MEAN.includes(kernel) && biases ? { mean } : {}),
    ...(OF_PENALTY.includes(kernel) && offset !== 0 ? { offset } : {}),
    ...(isScaled ? { lambda: (lambda as number) / unit, ...(biases ? { biasLambda: lambda } : {}) } : {}),
    // As λ, μ of factors is in the unit of the ratings, and μ of biases is not.
    ...(isScaled && ridge !== undefined && uses.bias === undefined
      ? { ridge: (ridge as number) / unit }
      : {}),
  };
}

/** The partitions of given initial factors, in host memory or in files, and of their coefficients, or zeros. */
function givenFactors(
  problem: AlsProblem,
  bound: BoundPlan,
  start: AlsStart<FactorValues>,
  cuts: Readonly<Record<Side, readonly RowRange[]>>,
): Given[] {
  return sides.flatMap((side) => {
    const { values, bias } = start[side];
    const f = dataSetOf(bound, side).columns ?? 1;
    const rows = cuts[side].flatMap(({ from, to }, partition) => {
      const part = (name: string, column: Pick<Partition, 'columns' | 'stored'>): Given => {
        const set = dataSetOf(bound, name);
        return [partRef(bound, set, partition, 0), { layout: set.layout, rows: to - from, ...column }];
      };
      const rows: Pick<Partition, 'columns' | 'stored'> =
        values instanceof Float32Array
          ? { columns: { values: values.subarray(from * f, to * f) } }
          : { columns: {}, stored: { read: () => values.read(from * f, to * f), drop: () => undefined } };
      return [
        part(side, rows),
        ...(bias ? [part(`${side}-bias`, { columns: { values: bias.slice(from, to) } })] : []),
      ];
    });
    const { coefficients } = start[side];
    const fitted = targetsOf(problem, side).map((target): Given => {
      const set = dataSetOf(bound, target.coefficients);
      const [{ rows: features }] = set.parts;
      const given = target.layout === 'bias' ? coefficients?.bias : coefficients?.values;
      const none = () => sharedArray(Float32Array, features * target.columns);
      const own = { layout: set.layout, rows: features, columns: { values: given ?? none() } };
      return [partRef(bound, set, 0, 0), own];
    });
    return [...rows, ...fitted];
  });
}

/**
 * Least number of rows that one task solves from their equations, on a device whose passes are cut into
 * tasks.
 */
const SOLVED_ROWS = 64;

/**
 * Ratings in rows. For ratings in files the slices of a pass are stored with them, and equal the slices for
 * ratings in memory.
 */
type SlicedRows = RatedRows & { readonly slices?: readonly RowRange[] };

/**
 * The ratings sorted by a side: its parts, and the blocks that tasks read. If the side is solved from the
 * whole other side, the blocks are the parts.
 */
interface SideBlocks {
  readonly parts: readonly SlicedRows[];
  readonly blocks: readonly (SlicedRows | BlockInFile)[];
}

/**
 * The slices (row ranges of tasks) of each stage, by part or block. They depend only on the ratings, not on
 * the number of threads.
 */
function alsSlices(
  problem: AlsProblem,
  ratings: Readonly<Record<Side, SideBlocks>>,
  tests: readonly RatedRows[],
): Record<string, Slice[][]> {
  const { grid, params, solver, device, places, rows: sizes } = problem;
  const { wholePasses: whole, parallelism } = device;
  const implicit = params.implicitPrefs;
  const cut = (parts: readonly (SlicedRows | BlockInFile)[]) =>
    parts.map((block) => (whole ? evenRanges(block.rows, 1) : slicesOf(block)));
  const rows = (parts: readonly RatedRows[]) =>
    parts.map((part) => evenRanges(part.rows, whole ? 1 : Math.min(128, Math.ceil(part.rows / SOLVED_ROWS))));
  const gram = gramSlices(params.rank, whole);
  const ofSide = (side: Side): Record<string, Slice[][]> => {
    const { parts, blocks } = ratings[side];
    const fixedRows = sizes[otherSide[side]];
    const tiled = { tiling: tilingOf(params, solver, fixedRows, device), fixedRows, parallelism };
    const updated = cut(parts).map((slices, part) => tiledSlices(parts[part].offsets, slices, tiled));
    return {
      ...(isInBlocks(grid, side)
        ? slicesInBlocks(problem, side, { ofBlocks: cut(blocks), ofRows: rows, parts })
        : { [`update-${side}`]: updated }),
      [measureStages[side]]: cut(parts),
      ...(side === 'users' && { [measureStages.solved]: cut(parts) }),
      ...(!implicit
        ? {}
        : !hasGramOfParts(grid, side, places.length)
          ? { [`gram-${side}`]: places.map(() => gram) }
          : { [`grams-${side}`]: parts.map(() => gram) }),
    };
  };
  const { parts, blocks } = ratings.users;
  return {
    initialize: parts.map((block) => balancedRanges(block.offsets, taskCount(block.ratings))),
    ...(Object.assign({}, ...sides.map(ofSide)) as Record<string, Slice[][]>),
    [measureStages.train]: cut(blocks),
    [measureStages.test]: cut(tests),
    ...(implicit
      ? {
          [implicitStages.error]: cut(blocks),
          [implicitStages.ranks]: parts.map((part) => rankSlices(part.rows, whole)),
        }
      : {}),
  };
}

function slicesOf(block: SlicedRows | BlockInFile): RowRange[] {
  if (block.offsets === undefined) return block.slices.slice();
  return block.slices?.slice() ?? balancedRanges(block.offsets, taskCount(block.ratings));
}

/** Slices of the stages of a side whose equations or products are sums over blocks. */
function slicesInBlocks(
  problem: AlsProblem,
  side: Side,
  cuts: {
    readonly ofBlocks: RowRange[][];
    readonly ofRows: (parts: readonly RatedRows[]) => RowRange[][];
    readonly parts: readonly RatedRows[];
  },
): Record<string, Slice[][]> {
  const { grid, places } = problem;
  const named = (stages: readonly string[], slices: RowRange[][]) =>
    Object.fromEntries(stages.map((stage) => [stage, slices]));
  const solved = stepsEverywhere(grid, side) ? places.flatMap(() => cuts.parts) : cuts.parts;
  const formed = cuts.parts.flatMap((part) => placesOfFixedParts(problem, side).map(() => part));
  return {
    ...named([`equations-${side}`, `residuals-${side}`, `products-${side}`], cuts.ofBlocks),
    ...named([`begin-${side}`, `step-${side}`, `update-${side}`], cuts.ofRows(solved)),
    ...(sumsOf(grid, side) === 'partial-equations'
      ? named(equationVectorStages(side), cuts.ofRows(formed))
      : {}),
  };
}
