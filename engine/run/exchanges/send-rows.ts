import type { PartitionRef } from '../../partition.ts';
import { HOST, type Place } from '../../plan/place.ts';
import type { Wire } from '../step.ts';
import type { StepList } from '../step-list.ts';

/** A part of a data set at one of its places. */
export interface Located {
  readonly ref: PartitionRef;
  readonly at: Place;
  /** Other places that also have it. */
  readonly also?: readonly Place[];
  /**
   * The name of the part's rows while they are sent, and at the other places, if these keep their own
   * version. Default: `ref`.
   */
  readonly as?: PartitionRef;
}

/**
 * Sends the rows of a part to tasks at several places. `use` adds the task at a place and returns the id of
 * its step. A task at the part's own place reads the part directly. A task at another place reads a copy,
 * which is sent through host memory and freed after the task. The rows are downloaded once for all places.
 *
 * Places that compute in this process's memory have no wire form. Copies for them are made one at a time,
 * because each takes memory.
 */
export function sendRows(
  list: StepList,
  stage: string,
  { ref, at, also = [], as = ref }: Located,
  places: readonly Place[],
  wire: Wire | undefined,
  use: (place: Place) => number,
): void {
  const has = [at, ...also];
  for (const place of places) if (has.includes(place)) use(place);
  const others = places.filter((place) => !has.includes(place));
  if (others.length === 0) return;
  if (wire === undefined) {
    for (const place of others) {
      list.move(stage, ref, at, place, { as });
      use(place);
      list.free(stage, place, [as]);
    }
    return;
  }
  list.move(stage, ref, at, HOST, { wire, as });
  const read = others.map((place) => {
    list.move(stage, as, HOST, place, { wire });
    const id = use(place);
    list.free(stage, place, [as], { copies: true });
    return id;
  });
  // Copies for places with their own memory stay in host memory until their tasks have read them.
  list.free(stage, HOST, [as], { ended: read });
}
