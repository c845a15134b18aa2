import type { JsonObject } from '../../../engine/json.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { Task } from '../../../engine/task.ts';

/** Values as tasks give them when all goes well: no bad row, and errors that fall in no round. */
export function valuesOf({ kernel, params }: Task): JsonObject {
  if (kernel === 'update' || kernel === 'update-implicit' || kernel === 'solve-equations')
    return { badRow: -1, objective: 0 };
  if (kernel === 'end-gradients') return { badRow: -1 };
  if (kernel === 'count-positive') return { negative: 0, zero: 0, sum: 1e-3 };
  if (kernel === 'implicit-error') return { sum: 1e-3 };
  if (kernel === 'squared-error')
    return { squared: 1e-3, absolute: 1e-3, count: Number(params.to) - Number(params.from) };
  return kernel === 'weighted-norm' ? { sum: 1e-3, plain: 1e-3 } : {};
}

/** Partitions that a task gives to the host, of the right shape. */
export function madeBy({ kernel, params }: Task): Record<string, Partition> {
  if (kernel === 'batch-order') return { order: orders('batch-order', Number(params.batches)) };
  if (kernel === 'wave-order')
    return { order: orders('wave-order', Number(params.workers) * Number(params.columnBands)) };
  return {};
}

function orders(layout: string, length: number): Partition {
  return { layout, rows: length, columns: { order: sharedArray(Uint32Array, length) } };
}
