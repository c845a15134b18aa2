import { type Partition, partitionKey, type PartitionRef } from '../partition.ts';
import type { DeviceInfo } from '../plan/device-info.ts';
import { HOST, type Place } from '../plan/place.ts';

/** A device that takes a copy. */
interface Target {
  readonly info: Pick<DeviceInfo, 'place' | 'ownMemory'>;
  put(ref: PartitionRef, partition: Partition): void;
}

interface Copy {
  readonly ref: PartitionRef;
  readonly partition: Partition;
  readers: number;
  freed: boolean;
}

/**
 * Tracks spilled partitions in use: copies of them at devices, and files that tasks read directly. The copy's
 * memory, or the file, is given back once a step has freed it and no task reads it. Both conditions are
 * needed: a device that works in order receives the free while the previous task may still run.
 */
export class StagedCopies {
  readonly #giveBack: (partition: Partition, ref: PartitionRef) => void;
  readonly #copies = new Map<string, Copy>();

  /** `giveBack` receives partitions that are no longer used. */
  constructor(giveBack: (partition: Partition, ref: PartitionRef) => void) {
    this.#giveBack = giveBack;
  }

  add(at: Place, ref: PartitionRef, partition: Partition): void {
    this.#copies.set(keyOf(at, ref), { ref, partition, readers: 0, freed: false });
  }

  /**
   * Puts a copy onto a device. A device that shares the host's memory copies a matrix, so the memory of the
   * given one is given back at once.
   */
  put(device: Target, ref: PartitionRef, partition: Partition): void {
    const { place, ownMemory } = device.info;
    this.add(place, ref, partition);
    device.put(ref, partition);
    if (partition.layout === 'factors' && place !== HOST && !ownMemory) this.free(place, ref);
  }

  /** Records that a task starts to read copies among its inputs; returns the function that ends the read. */
  read(at: Place, inputs: readonly PartitionRef[]): () => void {
    const copies =
      this.#copies.size === 0 ? [] : inputs.flatMap((ref) => this.#copies.get(keyOf(at, ref)) ?? []);
    for (const copy of copies) copy.readers++;
    return () => {
      for (const copy of copies) {
        copy.readers--;
        this.#end(copy);
      }
    };
  }

  free(at: Place, ref: PartitionRef): void {
    const copy = this.#copies.get(keyOf(at, ref));
    if (copy === undefined) return;
    copy.freed = true;
    this.#copies.delete(keyOf(at, ref));
    this.#end(copy);
  }

  /** Number of copies that are not freed yet. */
  get size(): number {
    return this.#copies.size;
  }

  #end({ ref, partition, readers, freed }: Copy): void {
    if (freed && readers === 0) this.#giveBack(partition, ref);
  }
}

function keyOf(at: Place, ref: PartitionRef): string {
  return `${at} ${partitionKey(ref)}`;
}
