import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { Step } from '../../engine/run/step.ts';

/**
 * True where one device that works in order is sent all of the steps when they begin: what is sent behind
 * them finds the versions that they make, and does not disturb those that they read. Partitions may come to
 * the host between; none comes from there.
 *
 */
export function sentAtOnce({ devices }: BoundPlan, steps: readonly Step[]): boolean {
  const device = devices.find(({ place }) => place === steps[0]?.at);
  return (
    steps.length === 0 ||
    (device?.inOrder === true &&
      steps.every(
        ({ at, ended, do: { kind } }) =>
          at === device.place && ended.length === 0 && kind !== 'move' && kind !== 'spill',
      ))
  );
}
