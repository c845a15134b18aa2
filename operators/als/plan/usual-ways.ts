import type { RequestedGrids } from '../partitions.ts';
import { describeGrid } from './cost/candidates.ts';
import { costOf, type IterationCost } from './cost/cost.ts';
import { spreadGrid } from './cost/spread.ts';
import { type AlsGrid, suits } from './grid.ts';
import type { AlsProblem } from './problem.ts';

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
    const plain: UsualWay = { name: nameOf(some.grid, at + 1), problem: some, cost: costOf(some) };
    return JSON.stringify(grid) === JSON.stringify(some.grid)
      ? [plain]
      : [
          { name: nameOf(grid, at + 1), problem: { ...some, grid }, grid, cost: costOf({ ...some, grid }) },
          plain,
        ];
  });
  function nameOf(grid: AlsGrid, count: number): string {
    return count === compute.length
      ? describeGrid(grid)
      : `${count} of ${compute.length} devices: ${describeGrid(grid)}`;
  }
  const handicap = ({
    problem: {
      compute: { length: count },
    },
    cost,
  }: UsualWay) => cost.seconds * (1 + WORTH_DEVICE * Math.log2(count));
  return ways.sort((left, right) => handicap(left) - handicap(right));
}
