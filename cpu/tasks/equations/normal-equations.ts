import type { TaskHandler } from '../../handler.ts';
import { biasColumn, subtractFixed } from '../biases.ts';
import { weighedChunk, workspaceOf as workspaceBehindWeights } from '../implicit/weighed-chunk.ts';
import { rowChunks, workspaceOf } from '../row-chunks.ts';
import { requireEquations } from './equation-shape.ts';

/**
 * See `normal-equations` of KernelTasks. A row's ratings are summed in the workspace, as `update` sums them,
 * and then added to its equations at once.
 */
export const normalEquations: TaskHandler<'normal-equations'> = (scope) => {
  const { from, to, rank, rowStart = 0, mean = 0, implicit } = scope.params;
  const block = scope.partition('block');
  const offsets = block.columns.offsets as Int32Array;
  const [fixed, equations] = [scope.matrix('fixed'), scope.matrix('equations')];
  const fixedBias = biasColumn(scope, 'fixedBias');
  const biased = fixedBias ? 1 : 0;
  requireEquations('normal-equations', equations, rank, fixedBias !== undefined, to - rowStart);
  const { kernels } = scope;
  const workspace = implicit ? workspaceBehindWeights(scope) : workspaceOf(scope);
  const size = fixed.stride * 4;
  let [length, total] = [0, 0];
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, block, from, to, fixed.stride ** 2 / 40, fixed.stride ** 2 / 16)) {
    const { row, rows, count, indices, values, starts, ends } = chunk;
    bytesUp += 8 * count + 4 * rows;
    if (fixedBias) subtractFixed(scope, chunk, mean, fixedBias);
    const weighed = implicit && weighedChunk(scope, implicit, chunk);
    for (let r = 0; r < rows; r++) {
      const at = starts && ends ? offsets[row + r] - offsets[row] : 0;
      const n = starts && ends ? offsets[row + r + 1] - offsets[row + r] : count;
      if (n === 0) continue;
      const more = starts ? 0 : 1;
      length = starts ? n : length + n;
      total = (starts ? 0 : total) + (biased ? kernels.sumOf(values + 4 * at, n) : 0);
      if (weighed)
        kernels.accumulateImplicit(
          fixed.pointer,
          size,
          indices + 4 * at,
          weighed.targets + 4 * at,
          weighed.weights + 4 * at,
          n,
          more,
          workspace,
        );
      else
        kernels.accumulateRow(
          fixed.pointer,
          size,
          indices + 4 * at,
          values + 4 * at,
          n,
          biased,
          more,
          workspace,
        );
      if (ends)
        kernels.addToEquations(
          equations.pointer + (row + r - rowStart) * equations.stride * 4,
          size,
          rank,
          length,
          total,
          biased,
          workspace,
        );
    }
  }
  return { rows: to - from, bytesUp };
};
