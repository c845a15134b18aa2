import type { PartitionRef } from '../../../engine/partition.ts';
import type { Device } from '../../../engine/run/device.ts';

/**
 * Numbers other than 0 in the padding of a matrix with so many columns. A CPU's matrices are looked at after
 * each task, in the thread that ran it (poisoned-cpu.ts); here is what a GPU has.
 */
export async function paddingOf(device: Device, ref: PartitionRef, columns: number): Promise<number[]> {
  if (device.info.kind !== 'gpu') return [];
  const { rows, columns: fetched } = await device.fetch(ref, {
    form: 'f32',
    take: (bytes) => new SharedArrayBuffer(bytes),
  });
  const values = fetched.values as Float32Array;
  const stride = values.length / rows;
  return Array.from(values).filter((value, at) => at % stride >= columns && value !== 0);
}
