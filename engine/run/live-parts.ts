import type { PartitionRef } from '../partition.ts';
import type { Place } from '../plan/place.ts';

/** Memory that is allocated at a place. */
export interface Allocation {
  readonly place: Place;
  readonly bytes: number;
  /** True if the place keeps the memory for reuse after it is freed. */
  readonly pooled: boolean;
}

const PARTITIONS = 2 ** 32;

/** A number for a partition and a version of a data set: cheaper as a key than partitionKey. */
export function partNumber({ partition, version }: PartitionRef): number {
  return version * PARTITIONS + partition;
}

/** The allocations for each partition at each place. A partition may have several at a place. */
export class LiveParts {
  readonly #places = new Map<Place, Map<string, Map<number, Allocation[]>>>();

  has(at: Place, ref: PartitionRef): boolean {
    return this.#places.get(at)?.get(ref.name)?.has(partNumber(ref)) ?? false;
  }

  add(at: Place, ref: PartitionRef, allocation: Allocation): void {
    let names = this.#places.get(at);
    if (names === undefined) this.#places.set(at, (names = new Map()));
    let parts = names.get(ref.name);
    if (parts === undefined) names.set(ref.name, (parts = new Map()));
    const key = partNumber(ref);
    const found = parts.get(key);
    if (found === undefined) parts.set(key, [allocation]);
    else found.push(allocation);
  }

  /** Removes a partition's allocations at a place and returns them. */
  remove(at: Place, ref: PartitionRef): readonly Allocation[] {
    const parts = this.#places.get(at)?.get(ref.name);
    const key = partNumber(ref);
    const found = parts?.get(key) ?? [];
    parts?.delete(key);
    return found;
  }
}
