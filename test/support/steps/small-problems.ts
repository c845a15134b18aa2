import { noEvents } from '../../../engine/events.ts';
import type { KeyColumn } from '../../../engine/keys/key-column.ts';
import { RunMetrics } from '../../../engine/metrics.ts';
import { dataSetName, sharedArray } from '../../../engine/partition.ts';
import { type DeviceInfo, SOFTWARE_MARK } from '../../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Executor } from '../../../engine/run/device.ts';
import type { AlsData } from '../../../operators/als/factors.ts';
import { type RatingBlock, ratingsOf } from '../../../operators/ratings/ratings.ts';
import type { SgdData } from '../../../operators/sgd/data/data.ts';

export const cpuInfo: DeviceInfo = {
  place: 'cpu',
  kind: 'cpu',
  parallelism: 2,
  inOrder: false,
  wholePasses: false,
  ownMemory: false,
  capacityBytes: 2 ** 32,
  strideStep: 8,
  description: 'threads',
};

/** A device like a GPU, but one that leaves nothing out: it needs what every kind of device needs. */
export function gpuInfo(n: number, more: Partial<DeviceInfo> = {}): DeviceInfo {
  return {
    place: `gpu:${n}`,
    kind: 'gpu',
    parallelism: 1,
    inOrder: true,
    wholePasses: true,
    ownMemory: true,
    capacityBytes: null,
    strideStep: 16,
    limits: { workgroupBytes: 49_152, workgroupThreads: 1024, teamLanes: 32, float16: true },
    description: SOFTWARE_MARK,
    ...more,
  };
}

/** A block from its rows: the columns that each rates. */
export function blockOfRows(rows: readonly (readonly number[])[], name = 'block'): RatingBlock {
  const ratings = rows.reduce((sum, row) => sum + row.length, 0);
  const [offsets, indices, values] = [
    sharedArray(Int32Array, rows.length + 1),
    sharedArray(Uint32Array, ratings),
    sharedArray(Float32Array, ratings),
  ];
  rows.forEach((row, u) => {
    offsets[u + 1] = offsets[u] + row.length;
    row.forEach((column, k) => {
      indices[offsets[u] + k] = column;
      values[offsets[u] + k] = 1 + ((u + column) % 5);
    });
  });
  return {
    ref: { name: dataSetName(name), partition: 0, version: 0 },
    rows: rows.length,
    ratings,
    offsets,
    indices,
    values,
  };
}

function transposed(rows: readonly (readonly number[])[], columns: number): number[][] {
  return Array.from({ length: columns }, (_, column) =>
    rows.flatMap((row, u) => (row.includes(column) ? [u] : [])),
  );
}

function keys(count: number): KeyColumn {
  return { type: 'int32', values: Int32Array.from({ length: count }, (_, i) => i) };
}

export function alsProblem(
  rows: readonly (readonly number[])[],
  columns: number,
  test?: readonly (readonly number[])[],
): AlsData {
  return {
    byUser: ratingsOf(blockOfRows(rows, 'by-user')),
    byItem: ratingsOf(blockOfRows(transposed(rows, columns), 'by-item')),
    users: keys(rows.length),
    items: keys(columns),
    ...(test ? { test: blockOfRows(test, 'tests') } : {}),
  };
}

/** Labels are the positions themselves. The number of rows is at least the number of columns. */
export function sgdProblem(rows: readonly (readonly number[])[], columns: number): SgdData {
  const block = blockOfRows(rows, 'ratings');
  const columnOffsets = new Float64Array(columns + 1);
  transposed(rows, columns).forEach(
    (users, column) => (columnOffsets[column + 1] = columnOffsets[column] + users.length),
  );
  const side = (name: 'users' | 'items', count: number) => {
    const order = Uint32Array.from({ length: count }, (_, i) => i);
    return { name, ids: keys(count), labels: { label: order, order } };
  };
  return {
    rows: side('users', rows.length),
    columns: side('items', columns),
    ratings: ratingsOf(block),
    columnOffsets,
    scale: { mean: 3, center: 0, deviation: 1 },
    squares: block.values.reduce((sum, value) => sum + value * value, 0),
    duplicates: 0,
  };
}

export function contextOf(executor: Executor, more: Partial<ExecutionContext> = {}): ExecutionContext {
  return {
    signal: new AbortController().signal,
    executor,
    events: noEvents,
    metrics: new RunMetrics(),
    ...more,
  };
}

/** Every user rates every item but those for which 3 divides user + item. */
export function mostly(users: number, items: number): number[][] {
  return Array.from({ length: users }, (_, u) =>
    Array.from({ length: items }, (_, v) => v).filter((v) => (u + v) % 3 !== 0),
  );
}
