import type { Partition, PartitionRef } from '../../../engine/partition.ts';
import { type BoundPlan, dataSetOf, partRef } from '../../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { RowRange, Stage } from '../../../engine/plan/stages.ts';
import { type Side, sides } from '../plan/grid.ts';
import type { AlsStart } from './als-data.ts';

/** The stages of a given start: its factors come from the host in place of drawn ones and of zeros. */
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

/** The parts of a given start, in host memory. */
export function givenFactors(
  bound: BoundPlan,
  start: AlsStart,
  cuts: Readonly<Record<Side, readonly RowRange[]>>,
): [PartitionRef, Partition][] {
  return sides.flatMap((side) => {
    const { values, bias } = start[side];
    const f = dataSetOf(bound, side).columns ?? 1;
    return cuts[side].flatMap(({ from, to }, partition): [PartitionRef, Partition][] => {
      const part = (name: string, layout: string, column: Float32Array): [PartitionRef, Partition] => [
        partRef(bound, dataSetOf(bound, name), partition, 0),
        { layout, rows: to - from, columns: { values: column } },
      ];
      return [
        part(side, 'factors', values.subarray(from * f, to * f)),
        ...(bias ? [part(`${side}-bias`, 'bias', bias.slice(from, to))] : []),
      ];
    });
  });
}
