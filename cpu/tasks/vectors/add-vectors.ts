import type { TaskHandler } from '../../handler.ts';
import { biasColumn, subtractFixed } from '../biases.ts';
import { weighedChunk, workspaceOf as workspaceAfterWeights } from '../implicit/weighed-chunk.ts';
import { rowChunks, type RowChunk, workspaceOf } from '../row-chunks.ts';
import { gradientOffsets, rowAddress } from './gradient-shape.ts';

/**
 * Splits a chunk into pieces with ratings of one row each. `at`: the byte offset of a piece's first rating in
 * the chunk's lists.
 */
function* rowsOf(
  { row, rows, count, starts, ends }: RowChunk,
  offsets: Int32Array,
): Generator<{ readonly row: number; readonly at: number; readonly n: number }> {
  if (!starts || !ends) {
    yield { row, at: 0, n: count };
    return;
  }
  for (let r = row; r < row + rows; r++)
    if (offsets[r + 1] > offsets[r])
      yield { row: r, at: 4 * (offsets[r] - offsets[row]), n: offsets[r + 1] - offsets[r] };
}

/** See `add-residuals` of KernelTasks. */
export const addResiduals: TaskHandler<'add-residuals'> = (scope) => {
  const { from, to, rank, mean = 0, implicit } = scope.params;
  const block = scope.partition('block');
  const offsets = block.columns.offsets as Int32Array;
  const [fixed, previous, gradients] = [
    scope.matrix('fixed'),
    scope.matrix('previous'),
    scope.matrix('gradients'),
  ];
  const fixedBias = biasColumn(scope, 'fixedBias');
  const { scalars, sums } = gradientOffsets('add-residuals', gradients, rank, fixedBias !== undefined, to);
  const { kernels } = scope;
  const memory = new Float32Array(scope.memory.buffer);
  const work = implicit ? workspaceAfterWeights(scope) : workspaceOf(scope);
  const size = fixed.stride * 4;
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, block, from, to, fixed.stride / 8, 1)) {
    bytesUp += 8 * chunk.count + 4 * chunk.rows;
    if (fixedBias) subtractFixed(scope, chunk, mean, fixedBias);
    const weighed = implicit && weighedChunk(scope, implicit, chunk);
    for (const { row, at, n } of rowsOf(chunk, offsets)) {
      const target = rowAddress(gradients, row);
      const along = kernels.addVectorProducts(
        fixed.pointer,
        size,
        chunk.indices + at,
        (weighed?.targets ?? chunk.values) + at,
        weighed ? weighed.weights + at : 0,
        n,
        rowAddress(previous, row),
        target,
        sums && target + sums,
        work,
      );
      const numbers = (target + scalars) / 4;
      memory[numbers] += n;
      if (fixedBias) memory[numbers + 1] += kernels.sumOf(chunk.values + at, n);
      memory[numbers + 2] += along;
    }
  }
  return { rows: to - from, bytesUp };
};

/** See `add-products` of KernelTasks. */
export const addProducts: TaskHandler<'add-products'> = (scope) => {
  const { from, to, implicit } = scope.params;
  const block = scope.partition('block');
  const offsets = block.columns.offsets as Int32Array;
  const [fixed, direction, products] = [
    scope.matrix('fixed'),
    scope.matrix('direction'),
    scope.matrix('products'),
  ];
  const work = implicit ? workspaceAfterWeights(scope) : workspaceOf(scope);
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, block, from, to, fixed.stride / 8, 1)) {
    bytesUp += 8 * chunk.count + 4 * chunk.rows;
    const weighed = implicit && weighedChunk(scope, implicit, chunk);
    for (const { row, at, n } of rowsOf(chunk, offsets))
      scope.kernels.addVectorProducts(
        fixed.pointer,
        fixed.stride * 4,
        chunk.indices + at,
        0,
        weighed ? weighed.weights + at : 0,
        n,
        rowAddress(direction, row),
        rowAddress(products, row),
        0,
        work,
      );
  }
  return { rows: to - from, bytesUp };
};
