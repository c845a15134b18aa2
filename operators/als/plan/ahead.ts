import { type PhysicalPlan, unbound } from '../../../engine/plan/physical-plan.ts';
import { peakOf } from '../../../engine/run/walk.ts';
import { contracts } from '../../tasks/tasks.ts';
import { StoppingRule } from '../../training/stopping-rule.ts';
import type { AlsProblem } from './problem.ts';
import { sides } from './grid.ts';

type PlanWithoutMemory = Omit<PhysicalPlan, 'memory'>;

/**
 * The plan whose rounds are sent to the only device before the errors of those before are known, so that it does not stand still meanwhile: where it works in order on one part of each side and
 * has room for the items of two versions, and no rule may end the run.
 */
export function aheadWhereItFits(plan: PlanWithoutMemory, { compute, device, grid, params }: AlsProblem): PlanWithoutMemory {
  const inOne = sides.every((side) => grid[side].q === 1 && grid[side].ratings === 'device');
  if (compute.length > 1 || !device.inOrder || !inOne || params.maxIter < 2 || !StoppingRule.isForeseen(params) || plan.datasets.some(({ derived }) => derived)) return plan;
  const ahead: PlanWithoutMemory = { ...plan, keep: { ...plan.keep, ahead: true }, reasons: [...plan.reasons, 'an iteration is sent to the device before the errors of the one before are known; the factors of that one stay until then'] };
  const peak = peakOf(unbound(ahead), contracts, ahead.keep)[device.place] ?? 0;
  return peak <= (device.capacityBytes ?? Number.POSITIVE_INFINITY) ? ahead : plan;
}
