import type { RowRange, Slice } from '../../../engine/plan/stages.ts';
import type { RatedRows } from '../../ratings/ratings.ts';
import type { BlockInFile } from '../../ratings/sorting/columns-of-block.ts';
import { balancedRanges, evenRanges, taskCount } from '../../ratings/row-ranges.ts';
import { measureStages } from '../../training/loss.ts';
import { gramSlices, implicitStages, rankSlices } from '../implicit/stages.ts';
import { tiledSlices, tilingOf } from '../tiles.ts';
import {
  hasGramOfParts,
  isInBlocks,
  otherSide,
  type Side,
  sides,
  stepsEverywhere,
  sumsOf,
} from '../plan/grid.ts';
import { placesOfFixedParts } from '../plan/parted-side.ts';
import { equationVectorStages } from '../plan/vectors.ts';
import type { AlsProblem } from '../plan/problem.ts';

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
export interface SideBlocks {
  readonly parts: readonly SlicedRows[];
  readonly blocks: readonly (SlicedRows | BlockInFile)[];
}

/**
 * The slices (row ranges of tasks) of each stage, by part or block. They depend only on the ratings, not on
 * the number of threads.
 */
export function alsSlices(
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
