import type { Place } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';
import { reduceInGroups, type Reduction, reduceSlice } from './reduce.ts';

/**
 * The exchange reduce-scatter: each place gets the sums of its slices (cuMF, section 4.2, Figure 5 a). With
 * groups of places, such as the GPUs of one socket, partial sums add up inside each group first, and one of
 * each group crosses (Figure 5 b): (P0 + P1) + (P2 + P3). It goes slice by slice, as the given function is
 * called.
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
    reduceSlice(list, stage, reduced, sum(slice), shape(slice, given.owner));
  };
}

/** The place of the owner in its own group: the places that stand there in other groups add up for it. */
function turnOf(owner: Place, groups: readonly (readonly Place[])[]): number {
  return Math.max(0, ...groups.map((group) => group.indexOf(owner)));
}
