import type { TaskHandler } from '../../handler.ts';
import { rowChunks } from '../row-chunks.ts';
import { weighedChunk, workspaceOf } from './weighed-chunk.ts';

/** See `implicit-error` of KernelTasks. All chunks add to the same sum, in row order. */
export const implicitError: TaskHandler<'implicit-error'> = (scope) => {
  const { from, to, base } = scope.params;
  const rowFactors = scope.matrix('rowFactors');
  const size = rowFactors.stride * 4;
  const sum = workspaceOf(scope);
  const view = new Float64Array(scope.memory.buffer, sum, 1).fill(0);
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, scope.partition('block'), from, to, rowFactors.stride / 8, 1)) {
    const { targets, weights } = weighedChunk(scope, scope.params, chunk);
    scope.kernels.addImplicitErrors(
      rowFactors.pointer + chunk.row * size,
      scope.matrix('columnFactors').pointer,
      size,
      chunk.offsets,
      chunk.indices,
      targets,
      weights,
      base,
      chunk.rows,
      sum,
    );
    bytesUp += 8 * chunk.count;
  }
  return { rows: to - from, bytesUp, values: { sum: view[0] } };
};
