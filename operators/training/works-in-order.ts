import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { Step } from '../../engine/run/step.ts';

/** True where one device that works in order does all steps of a round with what it has: what is sent behind them finds the versions that they make. */
export function worksInOrder({ devices: [device, ...others] }: BoundPlan, steps: readonly Step[]): boolean {
  return others.length === 0 && device.inOrder && steps.every(({ at, do: { kind } }) => at === device.place && (kind === 'task' || kind === 'allocate' || kind === 'free'));
}
