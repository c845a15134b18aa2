import { type AlsGrid, type Side, type SideGrid, sides } from '../grid.ts';
import type { AlsProblem } from '../problem.ts';
import { blockLimit } from '../../../planner/sizes.ts';
import { gramSeconds, pipelinedOf, pipelineSeconds } from './cost.ts';
import { secondsAlone } from './seconds-alone.ts';

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
export function spreadGrid(problem: AlsProblem): AlsGrid {
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
