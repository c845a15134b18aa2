import type { Partition } from '../../../engine/partition.ts';
import { type BoundPlan, dataSetOf, partRef } from '../../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { RowRange, Stage } from '../../../engine/plan/stages.ts';
import type { Given } from '../../../engine/run/run-steps.ts';
import { type Side, sides } from '../plan/grid.ts';
import type { AlsStart, FactorValues } from './als-data.ts';

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

/** The partitions of given initial factors, in host memory or in files. */
export function givenFactors(
  bound: BoundPlan,
  start: AlsStart<FactorValues>,
  cuts: Readonly<Record<Side, readonly RowRange[]>>,
): Given[] {
  return sides.flatMap((side) => {
    const { values, bias } = start[side];
    const f = dataSetOf(bound, side).columns ?? 1;
    return cuts[side].flatMap(({ from, to }, partition) => {
      const part = (name: string, column: Pick<Partition, 'columns' | 'stored'>): Given => {
        const set = dataSetOf(bound, name);
        return [partRef(bound, set, partition, 0), { layout: set.layout, rows: to - from, ...column }];
      };
      const rows: Pick<Partition, 'columns' | 'stored'> =
        values instanceof Float32Array
          ? { columns: { values: values.subarray(from * f, to * f) } }
          : { columns: {}, stored: { read: () => values.read(from * f, to * f), drop: () => undefined } };
      return [
        part(side, rows),
        ...(bias ? [part(`${side}-bias`, { columns: { values: bias.slice(from, to) } })] : []),
      ];
    });
  });
}
