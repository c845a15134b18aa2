import { sharedArray } from '../../engine/partition.ts';
import { SCRATCH_BYTES, STRIDE_STEP, type TaskHandler } from '../handler.ts';

/** Pairs in scratch at a time. */
const CHUNK_PAIRS = 65_536;

/**
 * The factors of the users, or of the items, of a chunk of pairs: the address and stride of matrix rows, and
 * a function that converts positions to row numbers of this matrix. If the factors are in host memory, the
 * function first copies the rows to that address.
 */
interface Side {
  readonly pointer: number;
  readonly stride: number;
  place(positions: Uint32Array): Uint32Array;
}

export const predict: TaskHandler<'predict'> = (scope) => {
  const pairs = scope.partition('pairs');
  const { rows, columns } = pairs.columns as { rows: Uint32Array; columns: Uint32Array };
  const { rank } = scope.params;
  const { buffer } = scope.memory;
  const stride = STRIDE_STEP * Math.ceil(rank / STRIDE_STEP);
  const inHost = ['rowFactors', 'columnFactors'].filter((name) => !scope.hasMatrix(name)).length;
  const chunk = Math.min(
    CHUNK_PAIRS,
    Math.floor((SCRATCH_BYTES - 128) / (12 + 4 * stride * inHost) / 16) * 16,
  );
  const rowsAt = scope.scratch;
  const columnsAt = rowsAt + 4 * chunk;
  const valuesAt = columnsAt + 4 * chunk;
  let free = Math.ceil((valuesAt + 4 * chunk) / 64) * 64;
  const side = (name: string): Side => {
    if (scope.hasMatrix(name)) return { ...scope.matrix(name), place: (positions) => positions };
    const values = scope.partition(name).columns.values as Float32Array;
    const pointer = free;
    free += 4 * stride * chunk;
    // Writing rows keeps the padding 0.
    const gathered = new Float32Array(buffer, pointer, stride * chunk).fill(0);
    const numbers = Uint32Array.from({ length: chunk }, (_, k) => k);
    const place = (positions: Uint32Array) => {
      positions.forEach((position, k) =>
        gathered.set(values.subarray(position * rank, (position + 1) * rank), k * stride),
      );
      return numbers.subarray(0, positions.length);
    };
    return { pointer, stride, place };
  };
  const [ofRows, ofColumns] = [side('rowFactors'), side('columnFactors')];
  const rowsView = new Uint32Array(buffer, rowsAt, chunk);
  const columnsView = new Uint32Array(buffer, columnsAt, chunk);
  const valuesView = new Float32Array(buffer, valuesAt, chunk);
  const values = sharedArray(Float32Array, pairs.rows);
  for (let first = 0; first < pairs.rows && !scope.cancelled(); first += chunk) {
    const count = Math.min(chunk, pairs.rows - first);
    rowsView.set(ofRows.place(rows.subarray(first, first + count)));
    columnsView.set(ofColumns.place(columns.subarray(first, first + count)));
    scope.kernels.predictPairs(
      ofRows.pointer,
      ofColumns.pointer,
      4 * ofRows.stride,
      rowsAt,
      columnsAt,
      count,
      valuesAt,
    );
    values.set(valuesView.subarray(0, count), first);
  }
  return {
    rows: pairs.rows,
    bytesUp: 8 * pairs.rows,
    bytesDown: 4 * pairs.rows,
    partitions: { predictions: { layout: 'predictions', rows: pairs.rows, columns: { values } } },
  };
};
