import { sharedArray } from '../../../engine/partition.ts';
import { blockWaves } from '../../../engine/plan/grid-order.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { TaskHandler } from '../../handler.ts';

/**
 * Number of the random stream from which wave orders are drawn. Plans for CPU threads use the same stream, so
 * their epochs visit the blocks of a grid in the same order.
 */
const STREAM = 0xb10c;

/** See `wave-order` of KernelTasks. */
export const waveOrder: TaskHandler<'wave-order'> = ({ params: { seed, epoch, workers, columnBands } }) => {
  const waves = blockWaves(workers, columnBands, new CounterRandom(seed, STREAM).derive(epoch));
  const order = sharedArray(Uint32Array, waves.length * workers).fill(0xffff_ffff);
  waves.forEach((wave, number) =>
    wave.forEach(({ row, column }) => (order[number * workers + row] = column)),
  );
  return {
    rows: waves.length,
    partitions: { order: { layout: 'wave-order', rows: waves.length, columns: { order } } },
  };
};
