import { type MatrixView, SCRATCH_BYTES, STRIDE_STEP, type TaskHandler, valuesOf } from '../../handler.ts';
import { topN } from '../top-n.ts';
import { vectorReader } from './list-vectors.ts';

/** Bytes of scratch for the search itself; the vectors are stored after them. */
const SEARCH_BYTES = SCRATCH_BYTES - (4 << 20);

/**
 * See `assign-lists` of KernelTasks. The nearest center is the one with the highest product of [w θ, 1] and
 * [w c, -‖w c‖² / 2], which the kernels of top-n find.
 */
export const assignLists: TaskHandler<'assign-lists'> = (scope) => {
  const { from, to, rank } = scope.params;
  const vectors = scope.partition('vectors').columns.values as Float32Array;
  const weights = scope.partition('weights').columns.values as Float32Array;
  const chosen = valuesOf<Uint32Array>(scope, 'rows');
  const lists = scope.partition('lists').columns.values as Uint32Array;
  const centers = scope.matrix('centers');
  const stride = STRIDE_STEP * Math.ceil((rank + 1) / STRIDE_STEP);
  const most = Math.floor((SCRATCH_BYTES - SEARCH_BYTES) / (4 * stride));
  const read = vectorReader(vectors, scope.params);
  const pointer = scope.scratch + SEARCH_BYTES;
  for (let first = from; first < to && !scope.cancelled(); first += most) {
    const count = Math.min(most, to - first);
    const rows = new Float32Array(scope.memory.buffer, pointer, count * stride);
    for (let row = 0; row < count; row++) {
      const at = row * stride;
      read(chosen === undefined ? first + row : chosen[first + row], rows, at);
      for (let k = 0; k < rank; k++) rows[at + k] *= weights[k];
      rows[at + rank] = 1;
    }
    const rowFactors: MatrixView = { pointer, rows: count, columns: rank + 1, stride };
    const { partitions } = topN({
      ...scope,
      params: { from: 0, to: count, rank: rank + 1, n: 1 },
      hasInput: () => false,
      matrix: (name) => (name === 'rowFactors' ? rowFactors : centers),
    });
    const items = partitions?.top.columns.items as Uint32Array;
    // A vector with a number that is not finite has no nearest center.
    for (let row = 0; row < count; row++) lists[first + row] = items[row] < centers.rows ? items[row] : 0;
  }
  return { rows: to - from };
};
