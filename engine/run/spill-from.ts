import { HOST } from '../plan/place.ts';
import type { Partition, PartitionRef } from '../partition.ts';
import type { WrittenFile } from '../spill/spilled-partition.ts';
import type { Device, Executor } from './device.ts';
import { hostDevice } from './devices.ts';

/** Writes partitions of a device to a file, under the names `as`; returns their references. */
export async function writeFrom(
  device: Device,
  refs: readonly PartitionRef[],
  as: readonly PartitionRef[],
  executor: Pick<Executor, 'devices' | 'spilled'>,
): Promise<readonly Partition[]> {
  const { place, ownMemory } = device.info;
  const { spilled } = executor;
  if (spilled === undefined) throw new Error(`there is no room to spill partitions of ${place}`);
  const write = (from: Device, names: readonly PartitionRef[], layout?: string) =>
    spilled.write(as, async (file) => {
      const inputs = Object.fromEntries(names.entries());
      const params = { file, ...(layout === undefined ? {} : { layout }) };
      const { values } = await from.run({ kernel: 'spill', inputs, outputs: {}, params });
      return values as WrittenFile;
    });
  if (place !== HOST && !ownMemory) return write(device, refs);
  // Only threads of the CPU write files: they get the host form, under a layout that the CPU does not copy.
  const host = hostDevice(executor);
  const [ref, ...others] = refs;
  if (others.length > 0) throw new Error(`partitions of ${place} are written one by one`);
  const fetched = await device.fetch(ref);
  host.put(as[0], { ...fetched, layout: SENT });
  try {
    return await write(host, as, fetched.layout);
  } finally {
    host.release(as[0]);
  }
}

const SENT = 'rows-to-write';

/** Moves partitions of a device to a file. Tasks read them there until they are freed. */
export async function spillFrom(
  device: Device,
  refs: readonly PartitionRef[],
  executor: Pick<Executor, 'devices' | 'spilled'>,
): Promise<readonly Partition[]> {
  const written = await writeFrom(device, refs, refs, executor);
  for (const [i, ref] of refs.entries()) {
    device.release(ref);
    device.put(ref, written[i]);
    executor.spilled?.copies.add(device.info.place, ref, written[i]);
  }
  return written;
}
