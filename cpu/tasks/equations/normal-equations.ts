import type { TaskHandler } from '../../handler.ts';
import { biasColumn, subtractFixed } from '../biases.ts';
import { weighedChunk, workspaceOf as workspaceAfterWeights } from '../implicit/weighed-chunk.ts';
import { type RowChunk, rowChunks, workspaceOf } from '../row-chunks.ts';
import { requireEquations } from './equation-shape.ts';

type WeighedChunk = RowChunk & { readonly weighed: ReturnType<typeof weighedChunk> | undefined };

/**
 * See `normal-equations` of KernelTasks. The ratings of a row are summed in the workspace, as the task
 * `update` does, and the sums are then added to the row's stored equations.
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
  const workspace = implicit ? workspaceAfterWeights(scope) : workspaceOf(scope);
  const size = fixed.stride * 4;
  /** Adds n ratings of a chunk, from index `at` on, to the sums in the workspace. */
  const accumulate = ({ indices, values, weighed }: WeighedChunk, at: number, n: number, more: 0 | 1) =>
    weighed
      ? kernels.accumulateImplicit(
          fixed.pointer,
          size,
          indices + 4 * at,
          weighed.targets + 4 * at,
          weighed.weights + 4 * at,
          n,
          more,
          workspace,
        )
      : kernels.accumulateRow(
          fixed.pointer,
          size,
          indices + 4 * at,
          values + 4 * at,
          n,
          biased,
          more,
          workspace,
        );
  const weigh = (chunk: RowChunk) => implicit && weighedChunk(scope, implicit, chunk);
  const sumOf = (address: number, n: number) => (biased ? kernels.sumOf(address, n) : 0);
  let [length, total] = [0, 0];
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, block, from, to, fixed.stride ** 2 / 40, fixed.stride ** 2 / 16)) {
    const { row, rows, count, values, starts, ends } = chunk;
    bytesUp += 8 * count + 4 * rows;
    if (fixedBias) subtractFixed(scope, chunk, mean, fixedBias);
    const weighed = { ...chunk, weighed: weigh(chunk) };
    for (let r = 0; r < rows; r++) {
      const isWhole = starts && ends;
      const at = isWhole ? offsets[row + r] - offsets[row] : 0;
      const n = isWhole ? offsets[row + r + 1] - offsets[row + r] : count;
      if (n === 0) continue;
      if (starts) [length, total] = [0, 0];
      length += n;
      total += sumOf(values + 4 * at, n);
      accumulate(weighed, at, n, starts ? 0 : 1);
      if (!ends) continue;
      const target = equations.pointer + (row + r - rowStart) * equations.stride * 4;
      kernels.addToEquations(target, size, rank, length, total, biased, workspace);
    }
  }
  return { rows: to - from, bytesUp };
};
