import type { RequestedGrids } from '../als-params.ts';
import { describeGrid } from './candidates.ts';
import {
  costOf,
  gramSeconds,
  type IterationCost,
  pipelinedOf,
  pipelineSeconds,
  secondsAlone,
} from './cost.ts';
import { type AlsGrid, type Side, type SideGrid, sides, suits, type AlsProblem } from './problem.ts';
import { blockLimit } from '../../planner/sizes.ts';

/**
 * Plans are tried in the order of their estimated seconds per iteration, multiplied by a handicap: 1 plus
 * this number for each doubling of the devices. The estimates are not exact, so more devices are tried first
 * only if they clearly save time: two devices instead of one if they save 13 %, four instead of two if they
 * save 11.5 %.
 */
const WORTH_DEVICE = 0.15;

/** A plan to try: the usual grid, or its variant by spreadGrid, on the first few of the devices. */
export interface UsualWay {
  readonly name: string;
  readonly problem: AlsProblem;
  /** Present if it differs from usualGrid of these devices, which a plan uses by default. */
  readonly grid?: AlsGrid;
  readonly cost: IterationCost;
}

/**
 * Lists the usual grid for each number of devices, in the order to try. More devices are not always faster:
 * devices with their own memory exchange rows through the host, which may take more time than they save. Then
 * it is faster to use fewer devices, or to let each device solve a share of the rows for itself. If the
 * caller requested numbers of parts, or the devices share the host's memory, all devices are used.
 */
export function usualWays(
  problem: AlsProblem,
  requested: RequestedGrids,
  problemOn: (compute: AlsProblem['compute']) => AlsProblem,
): UsualWay[] {
  const { compute, device } = problem;
  const isRequested = Object.keys(requested).length > 0;
  if (isRequested || compute.length === 1 || !device.ownMemory)
    return suits(problem.grid, requested)
      ? [{ name: describeGrid(problem.grid), problem, cost: costOf(problem) }]
      : [];
  const ways = compute.flatMap((_, at): UsualWay[] => {
    const some = problemOn(compute.slice(0, at + 1));
    const grid = spreadGrid(some);
    const plain: UsualWay = { name: nameOf(some.grid, some, problem), problem: some, cost: costOf(some) };
    if (JSON.stringify(grid) === JSON.stringify(some.grid)) return [plain];
    const spread = { ...some, grid };
    return [{ name: nameOf(grid, some, problem), problem: spread, grid, cost: costOf(spread) }, plain];
  });
  return ways.sort((left, right) => handicap(left) - handicap(right));
}

/** The name of a grid in the list of rejected plans. `problem` may have only the first devices of `all`. */
function nameOf(grid: AlsGrid, { compute: used }: AlsProblem, { compute: all }: AlsProblem): string {
  const name = describeGrid(grid);
  return used.length === all.length ? name : `${used.length} of ${all.length} devices: ${name}`;
}

/** The number by which plans are ordered: see WORTH_DEVICE. */
function handicap({
  problem: {
    compute: { length: count },
  },
  cost,
}: Pick<UsualWay, 'problem' | 'cost'>): number {
  return cost.seconds * (1 + WORTH_DEVICE * Math.log2(count));
}

/** The reason printed if a plan with `seconds` per iteration leaves devices out; `all`: seconds with all. */
export function fewerReason(used: number, given: number, seconds: number, all: number): string {
  const milliseconds = (time: number) => `${(1e3 * time).toFixed(1)} ms`;
  const worth = Math.round(100 * (1 - 1 / (1 + WORTH_DEVICE)));
  return (
    `${used} of ${given} devices ${used === 1 ? 'is' : 'are'} used: an iteration takes about ` +
    `${milliseconds(seconds)}, with all devices ${milliseconds(all)}; a second device must save ${worth} %`
  );
}

/**
 * Limits of the search in spreadGrid: the most parts per device, and the fractions of the ratings in the
 * common part, in steps of STEP percent up to MOST percent. Every device solves the common part for itself.
 */
const MOST_PARTS = 4;
const STEP = 2;
const MOST = 90;

/**
 * A common part (rows that every device solves for itself) must save at least this fraction of a
 * half-iteration, since its ratings take memory on every device.
 */
const COSTS = 0.03;

/** If the fastest device is faster than the slowest by at most this fraction, all count as equally fast. */
const EVEN = 0.02;

/**
 * The usual grid on several devices with their own memory, with the least estimated time. Parts are
 * proportional to the devices' speeds. For each side it chooses the number of parts, and the fraction of the
 * rows that every device solves for itself instead of receiving them from others. Solving them again may take
 * less time: an exchange passes through host memory at a few GB/s, and kernels solve rows of small ranks
 * faster than that.
 */
function spreadGrid(problem: AlsProblem): AlsGrid {
  const { compute, device, grid, profile } = problem;
  // If the ratings need several blocks, their parts were cut before the plan is made and cannot change.
  if (compute.length === 1 || !device.ownMemory || profile.ratings > blockLimit.ratings) return grid;
  const spread = (side: Side): SideGrid => {
    const alone = secondsAlone(problem, side);
    const total = alone.reduce((sum, seconds) => sum + 1 / seconds, 0);
    const speeds = alone.map((seconds) => 1 / seconds / total);
    const even: SideGrid = {
      ...grid[side],
      ...(Math.max(...speeds) > (1 + EVEN) * Math.min(...speeds) ? { speeds } : {}),
    };
    const cuts = Array.from({ length: MOST_PARTS }, (_, at): SideGrid => ({
      ...even,
      q: (at + 1) * compute.length,
    }));
    const ways = cuts.flatMap((cut) => {
      const pipelined = pipelinedOf({ ...problem, grid: { ...grid, [side]: cut } }, side, 1 / total);
      if (pipelined === undefined || cut.q >= problem.rows[side]) return [];
      return Array.from({ length: 1 + MOST / STEP }, (_, at) => ({
        cut,
        common: (at * STEP) / 100,
        seconds:
          pipelineSeconds(pipelined, (at * STEP) / 100) * (at === 0 ? 1 : 1 + COSTS) +
          gramSeconds(problem, side, cut.q + (at === 0 ? 0 : 1)),
      }));
    });
    const best = ways.reduce((least, way) => (way.seconds < least.seconds ? way : least), {
      cut: even,
      common: 0,
      seconds: Infinity,
    });
    return best.common === 0 ? best.cut : { ...best.cut, q: best.cut.q + 1, common: best.common };
  };
  const [users, items] = sides.map(spread);
  return { users, items };
}
