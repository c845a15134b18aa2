import { sharedArray } from '../../engine/partition.ts';
import type { TaskHandler } from '../handler.ts';

/** Pairs in scratch at a time. */
const CHUNK_PAIRS = 65_536;

/** See `predict` of KernelTasks. */
export const predict: TaskHandler<'predict'> = (scope) => {
  const pairs = scope.partition('pairs');
  const { rows, columns } = pairs.columns as { rows: Uint32Array; columns: Uint32Array };
  const rowFactors = scope.matrix('rowFactors');
  const columnFactors = scope.matrix('columnFactors');
  const size = rowFactors.stride * 4;
  const rowsAt = scope.scratch;
  const columnsAt = rowsAt + 4 * CHUNK_PAIRS;
  const valuesAt = columnsAt + 4 * CHUNK_PAIRS;
  const { buffer } = scope.memory;
  const rowsView = new Uint32Array(buffer, rowsAt, CHUNK_PAIRS);
  const columnsView = new Uint32Array(buffer, columnsAt, CHUNK_PAIRS);
  const valuesView = new Float32Array(buffer, valuesAt, CHUNK_PAIRS);
  const values = sharedArray(Float32Array, pairs.rows);
  for (let first = 0; first < pairs.rows && !scope.cancelled(); first += CHUNK_PAIRS) {
    const count = Math.min(CHUNK_PAIRS, pairs.rows - first);
    rowsView.set(rows.subarray(first, first + count));
    columnsView.set(columns.subarray(first, first + count));
    scope.kernels.predictPairs(rowFactors.pointer, columnFactors.pointer, size, rowsAt, columnsAt, count, valuesAt);
    values.set(valuesView.subarray(0, count), first);
  }
  return {
    rows: pairs.rows,
    bytesUp: 8 * pairs.rows,
    bytesDown: 4 * pairs.rows,
    partitions: { predictions: { layout: 'predictions', rows: pairs.rows, columns: { values } } },
  };
};
