import type { Partition, PartitionRef } from '../partition.ts';
import type { WrittenFile } from '../spill/spilled-partition.ts';
import type { Device, SpillStore } from './device.ts';

/** Writes partitions of a device to a file, under the names `as`; returns their references. */
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

/** Moves partitions of a device to a file. Tasks read them there until they are freed. */
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
