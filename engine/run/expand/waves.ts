import { partitionKey, type PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';

export interface PlacedRef {
  readonly at: Place;
  readonly ref: PartitionRef;
}

interface Visited {
  readonly stage: string;
  /** The steps of its tasks. */
  readonly ended: readonly number[];
  readonly toFree: readonly PlacedRef[];
}

/**
 * Schedules the copies of data that the visits of a stage need (a visit is the work on one part or block). A
 * place holds the copies of at most two visits: while the tasks of one visit run, the copies of the next are
 * made, as soon as the copies of the previous visit have been freed. Stages of a pipeline that visit the same
 * blocks share one object.
 */
export class Waves {
  readonly #list: StepList;
  readonly #last = new Map<Place, Visited>();
  /** The steps that must end before the next visit's copies are made. */
  readonly #freed = new Map<Place, readonly number[]>();

  constructor(list: StepList) {
    this.#list = list;
  }

  /** The steps that must end before the next visit's copies are made. */
  before(place: Place): readonly number[] {
    return this.#freed.get(place) ?? [];
  }

  /** Adds a visit whose steps are in the list; frees the copies of the one before it. */
  add(place: Place, visited: Visited): void {
    const before = this.#last.get(place);
    if (before !== undefined) this.#freed.set(place, [...before.ended, ...this.#free(visited.stage, before)]);
    this.#last.set(place, visited);
  }

  /**
   * Takes a copy over from the previous visit at a place. It is then freed after the next visit. Returns
   * false if there is no such copy.
   */
  takeOver(place: Place, ref: PartitionRef): boolean {
    const last = this.#last.get(place);
    const toFree = last?.toFree.filter(
      (copy) => copy.at !== place || partitionKey(copy.ref) !== partitionKey(ref),
    );
    if (last === undefined || toFree?.length === last.toFree.length) return false;
    this.#last.set(place, { ...last, toFree: toFree ?? [] });
    return true;
  }

  end(): void {
    for (const visited of this.#last.values()) this.#free(visited.stage, visited);
    this.#last.clear();
  }

  #free(stage: string, { toFree }: Visited): number[] {
    const places = new Map<Place, PartitionRef[]>();
    for (const { at, ref } of toFree) places.set(at, [...(places.get(at) ?? []), ref]);
    return [...places].flatMap(([at, refs]) => this.#list.free(stage, at, refs) ?? []);
  }
}
