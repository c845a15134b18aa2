import { type AlsGrid, type Side, type SideGrid, sides } from '../grid.ts';
import type { AlsProblem } from '../problem.ts';
import { blockLimit } from '../../../planner/sizes.ts';
import { gramSeconds, pipelinedOf, pipelineSeconds, secondsAlone } from './cost.ts';

/** Most parts of each device to try, and the step of the common part's share in percent of the ratings. */
const MOST_PARTS = 4;
const STEP = 2;
const MOST = 90;

/**
 * A common part must save at least this fraction of a half-iteration, since its ratings take memory on every
 * device.
 */
const COSTS = 0.03;

/** Speeds that differ by less count as equal. */
const EVEN = 0.02;

/**
 * The cheapest usual grid on several devices with their own memory. Parts are proportional to the devices'
 * speeds. For each side it chooses the number of parts, and the share of rows that every device solves for
 * itself instead of receiving them. That may take less time: an exchange passes through host memory at a few
 * GB/s, and kernels solve rows of small ranks faster than that.
 */
export function spreadGrid(problem: AlsProblem): AlsGrid {
  const { compute, device, grid, profile } = problem;
  // Ratings of several blocks are cut before the plan is made.
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
