import type { RowRange, Slice } from '../../../engine/plan/stages.ts';
import type { RatedRows } from '../../ratings/spilled-ratings.ts';
import { balancedRanges, evenRanges, taskCount } from '../../ratings/row-ranges.ts';
import { measureStages } from '../../training/loss.ts';
import { gramSlices, implicitStages, rankSlices } from '../implicit/stages.ts';
import { type Tiled, tiledSlices } from '../tiles.ts';
import { type AlsGrid, hasGramOfParts, isInBlocks, type Side, sides } from '../plan/grid.ts';

/** Rows that one task of a device with slices solves from their equations, at least. */
const SOLVED_ROWS = 64;

/** Rows of ratings. Those in files have their slices, which are those of the same ratings in memory. */
type SlicedRows = RatedRows & { readonly slices?: readonly RowRange[] };

/**
 * The ratings of a side: its parts, and the blocks that tasks are given, which are those parts where the
 * other side is fixed whole.
 */
export interface SideBlocks {
  readonly parts: readonly SlicedRows[];
  readonly blocks: readonly SlicedRows[];
}

export interface SliceOptions {
  readonly grid: AlsGrid;
  /** Devices that compute. */
  readonly devices: number;
  readonly rank: number;
  readonly implicit: boolean;
  /** The device shares the rows of a task out itself. */
  readonly whole: boolean;
  /** The rows of each side that are solved tile by tile. */
  readonly tilings: Readonly<Record<Side, Tiled>>;
}

/** The slices of the parts and blocks of each stage, by the ratings alone. */
export function alsSlices(
  ratings: Readonly<Record<Side, SideBlocks>>,
  tests: readonly RatedRows[],
  { grid, devices, rank, implicit, whole, tilings }: SliceOptions,
): Record<string, Slice[][]> {
  const cut = (parts: readonly SlicedRows[]) =>
    parts.map((block) =>
      whole
        ? balancedRanges(block.offsets, 1)
        : (block.slices?.slice() ?? balancedRanges(block.offsets, taskCount(block.ratings))),
    );
  const rows = (parts: readonly RatedRows[]) =>
    parts.map((part) => evenRanges(part.rows, whole ? 1 : Math.min(128, Math.ceil(part.rows / SOLVED_ROWS))));
  const gram = gramSlices(rank, whole);
  const named = (stages: readonly string[], slices: RowRange[][]) =>
    Object.fromEntries(stages.map((stage) => [stage, slices]));
  const ofSide = (side: Side): Record<string, Slice[][]> => {
    const { parts, blocks } = ratings[side];
    const updated = cut(parts).map((slices, part) => tiledSlices(parts[part].offsets, slices, tilings[side]));
    return {
      ...(isInBlocks(grid, side)
        ? {
            ...named([`equations-${side}`, `residuals-${side}`, `products-${side}`], cut(blocks)),
            ...named([`begin-${side}`, `step-${side}`, `update-${side}`], rows(parts)),
          }
        : { [`update-${side}`]: updated }),
      [measureStages[side]]: cut(parts),
      ...(!implicit
        ? {}
        : !hasGramOfParts(grid, side, devices)
          ? { [`gram-${side}`]: Array.from({ length: devices }, () => gram) }
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
