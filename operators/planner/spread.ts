import { type AlsGrid, type Side, type SideGrid, sides } from '../als/plan/grid.ts';
import type { AlsProblem } from '../als/plan/problem.ts';
import { pipelinedOf, pipelineSeconds, secondsAlone } from './cost.ts';

/** Common shares that are tried, in steps of so much. */
const STEP = 0.02;
const MOST = 0.9;

/** A common part must save so much of a half-iteration: it takes memory for its ratings on every device. */
const SAVES = 0.03;

/** Speeds that differ by less are equal. */
const EVEN = 0.02;

/**
 * The usual grid on several devices with memory of their own, by cost: parts by the speed of devices, and of each side the share of rows that every device solves for itself, where that takes less
 * time than to exchange them. An exchange goes through host memory at a few GB/s, while kernels solve rows faster than that where ranks are small.
 */
export function spreadGrid(problem: AlsProblem): AlsGrid {
  const { compute, device, grid } = problem;
  if (compute.length === 1 || !device.ownMemory) return grid;
  const spread = (side: Side): SideGrid => {
    const alone = secondsAlone(problem, side);
    const total = alone.reduce((sum, seconds) => sum + 1 / seconds, 0);
    const speeds = alone.map((seconds) => 1 / seconds / total);
    const cut: SideGrid = { ...grid[side], ...(Math.max(...speeds) > (1 + EVEN) * Math.min(...speeds) ? { speeds } : {}) };
    const pipelined = pipelinedOf({ ...problem, grid: { ...grid, [side]: cut } }, side, 1 / total);
    if (pipelined === undefined || problem.rows[side] <= cut.q) return cut;
    let [common, least] = [0, pipelineSeconds(pipelined) * (1 - SAVES)];
    for (let share = STEP; share <= MOST; share += STEP) {
      const seconds = pipelineSeconds(pipelined, share);
      if (seconds < least) [common, least] = [share, seconds];
    }
    return common === 0 ? cut : { ...cut, q: cut.q + 1, common: Math.round(100 * common) / 100 };
  };
  const [users, items] = sides.map(spread);
  return { users, items };
}
