import { type BoundPlan, dataSetOf, partRef } from '../../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { RowRange, Stage } from '../../../engine/plan/stages.ts';
import type { Given } from '../../../engine/run/run-steps.ts';
import { type Side, sides } from '../plan/grid.ts';
import type { AlsStart } from './als-data.ts';

/**
 * The stages before the first iteration if initial factors are given: they are copied from host memory
 * instead of being drawn or set to zero.
 */
export function startFrom({ start, datasets }: PhysicalPlan): Stage[] {
  const names = datasets.filter(({ given, derived }) => !given && !derived).map(({ name }) => name);
  return start.flatMap((stage): Stage[] => {
    if (stage.name === 'initialize')
      return [
        {
          name: stage.name,
          at: stage.at,
          work: { kind: 'exchange', how: 'move', data: names, to: 'from-host' },
        },
      ];
    return stage.name === 'allocate' ? [] : [stage];
  });
}

/** The partitions of given initial factors, in host memory. */
export function givenFactors(
  bound: BoundPlan,
  start: AlsStart,
  cuts: Readonly<Record<Side, readonly RowRange[]>>,
): Given[] {
  return sides.flatMap((side) => {
    const { values, bias } = start[side];
    const f = dataSetOf(bound, side).columns ?? 1;
    return cuts[side].flatMap(({ from, to }, partition) => {
      const part = (name: string, column: Float32Array): Given => {
        const set = dataSetOf(bound, name);
        const own = { layout: set.layout, rows: to - from, columns: { values: column } };
        return [partRef(bound, set, partition, 0), own];
      };
      return [
        part(side, values.subarray(from * f, to * f)),
        ...(bias ? [part(`${side}-bias`, bias.slice(from, to))] : []),
      ];
    });
  });
}
