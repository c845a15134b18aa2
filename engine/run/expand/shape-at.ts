import { type BoundPlan, strideOf } from '../../plan/bound-plan.ts';
import type { MatrixShape } from '../../partition.ts';
import { HOST, type Place } from '../../plan/place.ts';
import type { DataSet } from '../../plan/stages.ts';

/**
 * The shape of a part that is computed at one place and then sent to its home, the first of its places. If
 * only the home has its own memory, the rows already get the home's stride.
 */
export function shapeOnTheWay(bound: BoundPlan, set: DataSet, partition: number, place: Place): MatrixShape {
  const owns = (at: Place) => bound.devices.find((one) => one.place === at)?.ownMemory ?? false;
  const [home] = set.parts[partition].at;
  return set.layout === 'factors' && owns(home) && !owns(place)
    ? { ...shapeAt(bound, set, partition, home), isSent: true }
    : shapeAt(bound, set, partition, place);
}

/** The shape of a part of a matrix at a place. */
export function shapeAt({ devices }: BoundPlan, set: DataSet, partition: number, place: Place): MatrixShape {
  const { layout, columns = 1, contents, half } = set;
  const { strideStep = 1 } = devices.find((one) => one.place === place) ?? {};
  return {
    ...(layout === 'factors' ? {} : { layout }),
    rows: set.parts[partition].rows,
    columns,
    stride: strideOf(set, strideStep),
    ...(contents ? { contents } : {}),
    ...(half === 'only' ? { halfOnly: true } : {}),
    ...(set.packed && place === HOST ? { packed: true } : {}),
  };
}
