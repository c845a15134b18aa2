import { partitionKey, type PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';

/** A partition that leaves a place. */
export interface Leaving {
  readonly at: Place;
  readonly ref: PartitionRef;
}

interface Visited {
  readonly stage: string;
  /** The steps of its tasks. */
  readonly ended: readonly number[];
  readonly leaves: readonly Leaving[];
}

/**
 * The visits of a stage, or of those stages of a pipeline that go through the same blocks, place by place.
 * Two at a time have their copies at a place: those of the next one come while the tasks of one run, and wait
 * until the one before has left.
 */
export class Waves {
  readonly #list: StepList;
  readonly #last = new Map<Place, Visited>();
  /** The steps behind which the next visit's copies may come. */
  readonly #left = new Map<Place, readonly number[]>();

  constructor(list: StepList) {
    this.#list = list;
  }

  /** The steps that must have ended before copies of the next visit come. */
  before(place: Place): readonly number[] {
    return this.#left.get(place) ?? [];
  }

  /** A visit whose steps are in the list; the one before it leaves. */
  add(place: Place, visited: Visited): void {
    const before = this.#last.get(place);
    if (before !== undefined) this.#left.set(place, [...before.ended, ...this.#leave(visited.stage, before)]);
    this.#last.set(place, visited);
  }

  /**
   * Takes over a copy that the visit before has at a place, which then leaves behind the next visit. False:
   * it has none.
   */
  takeOver(place: Place, ref: PartitionRef): boolean {
    const last = this.#last.get(place);
    const leaves = last?.leaves.filter(
      (leaving) => leaving.at !== place || partitionKey(leaving.ref) !== partitionKey(ref),
    );
    if (last === undefined || leaves?.length === last.leaves.length) return false;
    this.#last.set(place, { ...last, leaves: leaves ?? [] });
    return true;
  }

  end(): void {
    for (const visited of this.#last.values()) this.#leave(visited.stage, visited);
    this.#last.clear();
  }

  #leave(stage: string, { leaves }: Visited): number[] {
    const places = new Map<Place, PartitionRef[]>();
    for (const { at, ref } of leaves) places.set(at, [...(places.get(at) ?? []), ref]);
    return [...places].map(([at, refs]) => this.#list.free(stage, at, refs));
  }
}
