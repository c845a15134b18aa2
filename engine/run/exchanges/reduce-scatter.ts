import type { Place } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';
import { reduceInGroups, type Reduction, reduceSlice } from './reduce.ts';

/**
 * The exchange reduce-scatter: each place gets the sums of its own slices (cuMF, section 4.2, Figure 5 a).
 * If places have groups, such as the GPUs of one socket, partial sums are first added inside each group, and
 * then one sum of each group is sent to the owner's group (Figure 5 b): (P0 + P1) + (P2 + P3). The returned
 * function adds one slice at a time.
 */
export function reduceScatter(
  list: StepList,
  stage: string,
  { slice: sliceOf, sum, shape }: Reduction,
  groups?: readonly (readonly Place[])[],
): (slice: number) => void {
  return (slice) => {
    const given = sliceOf(slice);
    const missing = groups && given.partials.find(({ at }) => !groups.some((group) => group.includes(at)));
    if (missing) throw new Error(`${stage}: no group has the place ${missing.at}`);
    const reduced =
      groups === undefined ? given : reduceInGroups(list, stage, given, groups, turnOf(given.owner, groups));
    reduceSlice(list, stage, reduced, sum(slice), (place) => shape(slice, place));
  };
}

/**
 * The owner's position in its group. In the other groups, the place at this position adds the slice's
 * partial sums.
 */
function turnOf(owner: Place, groups: readonly (readonly Place[])[]): number {
  return Math.max(0, ...groups.map((group) => group.indexOf(owner)));
}
