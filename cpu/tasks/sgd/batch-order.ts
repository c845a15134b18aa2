import { sharedArray } from '../../../engine/partition.ts';
import { CounterRandom, randomOrder } from '../../../engine/random.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `batch-order` of KernelTasks. */
export const batchOrder: TaskHandler<'batch-order'> = ({
  params: { seed, stream, epoch, batches, block },
}) => {
  const random = new CounterRandom(seed, stream).derive(epoch);
  const order = sharedArray(Uint32Array, batches);
  order.set(randomOrder(batches, block === undefined ? random : random.derive(block)));
  return {
    rows: batches,
    partitions: { order: { layout: 'batch-order', rows: batches, columns: { order } } },
  };
};
