import { type Partition, partitionKey, type PartitionRef } from '../partition.ts';
import type { Place } from '../plan/place.ts';
import type { SpillStore } from './device.ts';

interface Copy {
  readonly partition: Partition;
  readers: number;
  freed: boolean;
}

/**
 * Copies of spilled partitions at devices. The memory of one is given back once the copy is freed and no task reads it: a device that
 * works in order is told of the free while the task before it may still run.
 */
export class StagedCopies {
  readonly #store: SpillStore | undefined;
  readonly #copies = new Map<string, Copy>();

  constructor(store: SpillStore | undefined) {
    this.#store = store;
  }

  add(at: Place, ref: PartitionRef, partition: Partition): void {
    this.#copies.set(keyOf(at, ref), { partition, readers: 0, freed: false });
  }

  /** A task begins to read what there is among its inputs; gives the end of that. */
  read(at: Place, inputs: readonly PartitionRef[]): () => void {
    const copies = this.#copies.size === 0 ? [] : inputs.flatMap((ref) => this.#copies.get(keyOf(at, ref)) ?? []);
    for (const copy of copies) copy.readers++;
    return () => {
      for (const copy of copies) {
        copy.readers--;
        this.#giveBack(copy);
      }
    };
  }

  free(at: Place, ref: PartitionRef): void {
    const copy = this.#copies.get(keyOf(at, ref));
    if (copy === undefined) return;
    copy.freed = true;
    this.#copies.delete(keyOf(at, ref));
    this.#giveBack(copy);
  }

  #giveBack({ partition, readers, freed }: Copy): void {
    if (freed && readers === 0) this.#store?.giveBack(partition);
  }
}

function keyOf(at: Place, ref: PartitionRef): string {
  return `${at} ${partitionKey(ref)}`;
}
