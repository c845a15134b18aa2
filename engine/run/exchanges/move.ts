import type { PartitionRef } from '../../partition.ts';
import { HOST, type Place, SPILL } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';

/** A part's home, then its other places. */
export interface Homed {
  readonly ref: PartitionRef;
  readonly at: readonly Place[];
}

/** The exchange `move` to `places`: copies a part from its home, the first of its places, to all others. */
export function moveToPlaces(list: StepList, stage: string, { ref, at: [home, ...others] }: Homed): void {
  for (const place of others) list.move(stage, ref, home, place, { load: true });
}

/**
 * Exchange `move` `from-host`: copies a part from host memory to its places. Parts whose home is a file are
 * moved one after another, since one that is given in a file is in memory meanwhile. `before`: the step that
 * must have ended first; returns the step for the next part.
 */
export function moveFromHost(
  list: StepList,
  stage: string,
  { ref, at }: Homed,
  before: number | undefined,
): number | undefined {
  if (at[0] === HOST) return before;
  const ended = at[0] === SPILL && before !== undefined ? [before] : [];
  for (const place of at) list.move(stage, ref, HOST, place, { ended });
  const freed = list.free(stage, HOST, [ref]);
  return at[0] === SPILL ? freed : before;
}

/** Exchange `move` to `host`: adds a part to the results of the run. `givenBy`: see StepList.handOut. */
export function moveToResults(
  list: StepList,
  stage: string,
  { ref, at: [home] }: Homed,
  givenBy: number | undefined,
): void {
  list.handOut(stage, ref, home, givenBy);
}
