import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { type PhysicalPlan, unbound } from '../../engine/plan/physical-plan.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { contracts } from '../tasks/tasks.ts';
import { StoppingRule } from './stopping-rule.ts';

type PlanWithoutMemory = Omit<PhysicalPlan, 'memory'>;

/** The facts beside the plan that decide on rounds sent ahead. */
export interface AheadProblem {
  readonly called: 'iteration' | 'epoch';
  readonly params: ConstructorParameters<typeof StoppingRule>[0] & { readonly maxIter: number };
  /** The devices that compute, all of them. */
  readonly compute: readonly DeviceInfo[];
  /**
   * True where the first of them does a whole round by itself, and where errors change no later round but one
   * that failed.
   */
  readonly foreseen: boolean;
}

/**
 * The plan whose rounds are sent to the only device before the errors of those before are known, so that it
 * does not stand still meanwhile: where it works in order, has room for one more version of the factors, and
 * no rule may end the run.
 *
 */
export function aheadWhereItFits(
  plan: PlanWithoutMemory,
  { called, params, compute, foreseen }: AheadProblem,
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
  const ahead: PlanWithoutMemory = {
    ...plan,
    keep: { ...plan.keep, ahead: true },
    reasons: [
      ...plan.reasons,
      `an ${called} is sent to the device before the errors of the one before are known; the factors of that one stay until then`,
    ],
  };
  const peak = peakOf(unbound(ahead), contracts, ahead.keep)[device.place] ?? 0;
  return peak <= (device.capacityBytes ?? Number.POSITIVE_INFINITY) ? ahead : plan;
}
