import { computeDevice, hostDevice } from '../engine/devices.ts';
import type { Executor } from '../engine/executor.ts';
import { sharedArray } from '../engine/partition.ts';
import type { RatingBlock } from './rating-block.ts';

/**
 * Makes a block that was sorted on the host known to the device that computes, where that is another one; the block goes
 * there with the first task that names it. `pattern`: without its values. The caller releases it, or its device scope does.
 */
export function placeBlock({ ref, rows, offsets, indices, values }: RatingBlock, executor: Executor, part: 'whole' | 'pattern' = 'whole'): void {
  const device = computeDevice(executor);
  if (device === hostDevice(executor)) return;
  device.put(ref, { layout: 'rating-block', rows, columns: { offsets, indices, values: part === 'whole' ? values : sharedArray(Float32Array, 0) } });
}
