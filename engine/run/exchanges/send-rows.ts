import type { PartitionRef } from '../../partition.ts';
import { HOST, type Place } from '../../plan/place.ts';
import type { Wire } from '../step.ts';
import type { StepList } from '../step-list.ts';

/** A part of a data set at one of its places. */
export interface Located {
  readonly ref: PartitionRef;
  readonly at: Place;
  /** Other places that have it too. */
  readonly also?: readonly Place[];
  /**
   * The name of its rows on the way and at the other places, if those have a version of their own; default:
   * `ref`.
   */
  readonly as?: PartitionRef;
}

/**
 * Sends the rows of a part to the tasks that `use` adds at places: where the part lies they read it as it is,
 * at the other places a copy, which comes by way of host memory and goes behind its task. The rows come down
 * once, however many places they go to. Places that compute in the memory of this process have no wire: the
 * copies come one at a time, since they take memory there. `use` gives the id of its step.
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
  // The copies at places with memory of their own are in host memory until their tasks have read them.
  list.free(stage, HOST, [as], { ended: read });
}
