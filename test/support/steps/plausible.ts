import type { JsonObject } from '../../../engine/json.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { Task } from '../../../engine/task.ts';

/** Values as tasks give them when all goes well: no bad row, and errors that fall in no round. */
export function valuesOf({ kernel, params }: Task): JsonObject {
  if (kernel === 'update' || kernel === 'update-implicit' || kernel === 'solve-equations')
    return { badRow: -1, objective: 0 };
  if (kernel === 'end-gradients') return { badRow: -1 };
  if (kernel === 'implicit-error' || kernel === 'shifted-norm') return { sum: 1e-3 };
  if (kernel === 'squared-error')
    return { squared: 1e-3, absolute: 1e-3, count: Number(params.to) - Number(params.from) };
  return kernel === 'weighted-norm' ? { sum: 1e-3, plain: 1e-3 } : {};
}

/** Partitions that a task gives to the host, of the right shape. */
export function madeBy(
  { kernel, params }: Task,
  input: (name: string) => Partition | undefined,
): Record<string, Partition> {
  if (kernel === 'batch-order') return { order: orders('batch-order', Number(params.batches)) };
  if (kernel === 'wave-order')
    return { order: orders('wave-order', Number(params.workers) * Number(params.columnBands)) };
  return kernel === 'cut-block' ? cut(params as never, input('block')) : {};
}

function orders(layout: string, length: number): Partition {
  return { layout, rows: length, columns: { order: sharedArray(Uint32Array, length) } };
}

function cut(
  {
    from,
    to,
    columnStarts,
    local,
  }: {
    readonly from: number;
    readonly to: number;
    readonly columnStarts: readonly number[];
    readonly local?: boolean;
  },
  block: Partition | undefined,
): Record<string, Partition> {
  if (block === undefined) throw new Error('cut-block has no block');
  const { offsets, indices, values } = block.columns as {
    offsets: Int32Array;
    indices: Uint32Array;
    values: Float32Array;
  };
  const parts: Record<string, Partition> = {};
  for (let c = 0; c + 1 < columnStarts.length; c++) {
    const own = sharedArray(Int32Array, to - from + 1);
    const kept: number[] = [];
    for (let row = from; row < to; row++) {
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        if (indices[k] >= columnStarts[c] && indices[k] < columnStarts[c + 1]) kept.push(k);
      own[row - from + 1] = kept.length;
    }
    const columns = {
      offsets: own,
      indices: sharedArray(Uint32Array, kept.length),
      values: sharedArray(Float32Array, kept.length),
    };
    kept.forEach((k, at) => {
      columns.indices[at] = indices[k] - (local ? columnStarts[c] : 0);
      columns.values[at] = values[k];
    });
    parts[`part.${c}`] = { layout: 'rating-block', rows: to - from, columns };
  }
  return parts;
}
