import type { Place } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';
import { type Reduction, reduceSlice } from './reduce.ts';

/**
 * The exchange reduce-to-one: the partial sums of all slices add up at one place (the simple way of cuMF,
 * section 4.2, which that place's link bounds). It goes slice by slice, as the given function is called.
 */
export function reduceToOne(
  list: StepList,
  stage: string,
  { slice: sliceOf, sum, shape }: Reduction,
): (slice: number) => void {
  let one: Place | undefined;
  return (slice) => {
    const given = sliceOf(slice);
    one ??= given.owner;
    if (given.owner !== one)
      throw new Error(`${stage}: reduce-to-one has one place for sums, not ${one} and ${given.owner}`);
    reduceSlice(list, stage, given, sum(slice), shape(slice, one));
  };
}
