import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { Step } from '../../engine/run/step.ts';

/** True where one device that works in order does all steps of a round with what it has: what is sent behind them finds the versions that they make. */
export function worksInOrder({ devices }: BoundPlan, steps: readonly Step[]): boolean {
  const device = devices.find(({ place }) => place === steps[0]?.at);
  return device?.inOrder === true && steps.every(({ at, do: { kind } }) => at === device.place && (kind === 'task' || kind === 'allocate' || kind === 'free'));
}
