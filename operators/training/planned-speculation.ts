import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { type PhysicalPlan, unbound } from '../../engine/plan/physical-plan.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { contracts } from '../tasks/tasks.ts';
import { StoppingRule } from './stopping-rule.ts';

export type PlanWithoutMemory = Omit<PhysicalPlan, 'memory'>;

/** Facts that decide, in addition to the plan, whether rounds are sent early. */
export interface SpeculationProblem {
  readonly called: 'iteration' | 'epoch';
  readonly params: ConstructorParameters<typeof StoppingRule>[0] & { readonly maxIter: number };
  /** All devices that compute. */
  readonly compute: readonly DeviceInfo[];
  /**
   * True if rounds run wholly on the first device, and only a failure, never the errors of a round, can
   * change the next one.
   */
  readonly foreseen: boolean;
}

/**
 * If possible, plans that each round is sent before the errors of the previous one are known, to keep the
 * device busy. Requires that the only device works in order and has room for one more version of the factors,
 * and that no rule may end the run.
 */
export function speculatesWhereItFits(
  plan: PlanWithoutMemory,
  { called, params, compute, foreseen }: SpeculationProblem,
): PlanWithoutMemory {
  const [device] = compute;
  if (
    !foreseen ||
    compute.length > 1 ||
    !device.inOrder ||
    params.maxIter < 2 ||
    !StoppingRule.isForeseen(params) ||
    plan.datasets.some(({ derived }) => derived)
  )
    return plan;
  const speculating: PlanWithoutMemory = {
    ...plan,
    keep: { ...plan.keep, speculates: true },
    reasons: [
      ...plan.reasons,
      `an ${called} is sent to the device before the errors of the one before are known; the factors of that one stay until then`,
    ],
  };
  const peak = peakOf(unbound(speculating), contracts, speculating.keep)[device.place] ?? 0;
  return peak <= (device.capacityBytes ?? Number.POSITIVE_INFINITY) ? speculating : plan;
}
