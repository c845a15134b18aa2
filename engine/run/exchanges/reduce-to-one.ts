import type { Place } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';
import { type Reduction, reduceSlice } from './reduce.ts';

/**
 * The exchange reduce-to-one: the partial sums of all slices are added at one place (the simple scheme of
 * cuMF, section 4.2, limited by the link of that place). The returned function adds one slice at a time.
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
    reduceSlice(list, stage, given, sum(slice), (place) => shape(slice, place));
  };
}
