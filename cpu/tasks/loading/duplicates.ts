import { sharedArray } from '../../../engine/partition.ts';
import { blockOf, type TaskHandler } from '../../handler.ts';

export const findDuplicates: TaskHandler<'find-duplicates'> = (scope) => {
  const { offsets, indices } = blockOf(scope);
  const { from, to } = scope.params;
  const lengths = sharedArray(Int32Array, to - from);
  const repeated: number[] = [];
  for (let row = from; row < to; row++) {
    const before = repeated.length;
    for (let k = offsets[row] + 1; k < offsets[row + 1]; k++)
      if (indices[k] === indices[k - 1]) repeated.push(indices[k]);
    lengths[row - from] = offsets[row + 1] - offsets[row] - (repeated.length - before);
  }
  const columns = sharedArray(Uint32Array, repeated.length);
  columns.set(repeated);
  return {
    rows: offsets[to] - offsets[from],
    partitions: {
      lengths: { layout: 'lengths', rows: to - from, columns: { lengths } },
      repeated: { layout: 'columns', rows: columns.length, columns: { columns } },
    },
  };
};

export const combineDuplicates: TaskHandler<'combine-duplicates'> = (scope) => {
  // With the policy `last` the block's values are row numbers (u32).
  const block = blockOf(scope);
  const target = blockOf(scope, 'combined');
  const { from, to, policy } = scope.params;
  const rowData =
    policy === 'last'
      ? (scope.partition('rowData').columns as { ratings: Float32Array; timestamps: Float64Array })
      : undefined;
  for (let row = from; row < to; row++) {
    let place = target.offsets[row];
    for (let first = block.offsets[row]; first < block.offsets[row + 1];) {
      let end = first + 1;
      while (end < block.offsets[row + 1] && block.indices[end] === block.indices[first]) end++;
      const values = rowData
        ? latest(block.values.subarray(first, end), rowData)
        : combined(block.values.subarray(first, end), policy);
      for (const value of values) {
        target.indices[place] = block.indices[first];
        target.values[place++] = value;
      }
      first = end;
    }
  }
  return { rows: block.offsets[to] - block.offsets[from] };
};

function combined(group: Float32Array | Uint32Array, policy: string): ArrayLike<number> & Iterable<number> {
  if (group.length === 1) return group;
  const sorted = Float32Array.from(group).sort();
  let sum = 0;
  for (const value of sorted) sum += value;
  return [policy === 'mean' ? sum / sorted.length : sum];
}

function latest(
  rows: Float32Array | Uint32Array,
  data: { ratings: Float32Array; timestamps: Float64Array },
): [number] {
  let best = rows[0];
  for (const row of rows) {
    const later = data.timestamps[row] - data.timestamps[best];
    if (later > 0 || (later === 0 && data.ratings[row] > data.ratings[best])) best = row;
  }
  return [data.ratings[best]];
}
