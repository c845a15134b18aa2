import { type Partition, partitionKey, type PartitionRef } from '../partition.ts';
import type { Place } from '../plan/place.ts';
import type { WrittenFile } from '../spill/spilled-partition.ts';
import type { Device, SpillStore } from './device.ts';

interface Copy {
  readonly ref: PartitionRef;
  readonly partition: Partition;
  readers: number;
  freed: boolean;
}

/**
 * Copies of spilled partitions at devices, and partitions that their tasks read from files. The memory, or the
 * file, is given back once the copy is freed and no task reads it: a device that works in order is told of the
 * free while the task before it may still run.
 */
export class StagedCopies {
  readonly #giveBack: (partition: Partition, ref: PartitionRef) => void;
  readonly #copies = new Map<string, Copy>();

  /** `giveBack`: takes what is no longer used. */
  constructor(giveBack: (partition: Partition, ref: PartitionRef) => void) {
    this.#giveBack = giveBack;
  }

  add(at: Place, ref: PartitionRef, partition: Partition): void {
    this.#copies.set(keyOf(at, ref), { ref, partition, readers: 0, freed: false });
  }

  /** A task begins to read what there is among its inputs; gives the end of that. */
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

  /** Forgets the copies of runs that failed. */
  clear(): void {
    this.#copies.clear();
  }

  #end({ ref, partition, readers, freed }: Copy): void {
    if (freed && readers === 0) this.#giveBack(partition, ref);
  }
}

/** Writes partitions of a device to a file, under the names `as`; gives their references. */
export async function writeFrom(
  device: Device,
  refs: readonly PartitionRef[],
  as: readonly PartitionRef[],
  store: SpillStore | undefined,
): Promise<readonly Partition[]> {
  const { place } = device.info;
  if (store === undefined) throw new Error(`there is no room to spill partitions of ${place}`);
  const inputs = Object.fromEntries(refs.entries());
  return store.write(as, async (file) => {
    const { values } = await device.run({ kernel: 'spill', inputs, outputs: {}, params: { file } });
    return values as WrittenFile;
  });
}

/** Moves partitions of a device to a file, from where its tasks read them until they are freed. */
export async function spillFrom(
  device: Device,
  refs: readonly PartitionRef[],
  store: SpillStore | undefined,
): Promise<readonly Partition[]> {
  const written = await writeFrom(device, refs, refs, store);
  for (const [i, ref] of refs.entries()) {
    device.release(ref);
    device.put(ref, written[i]);
    store?.copies.add(device.info.place, ref, written[i]);
  }
  return written;
}

function keyOf(at: Place, ref: PartitionRef): string {
  return `${at} ${partitionKey(ref)}`;
}
