import type { GpuTaskHandler } from '../handler.ts';
import { addGramMatrix } from './gram.ts';

/**
 * The task `gram` (see KernelTasks) on a GPU: computes the whole Gram matrix of a side's factors in float32.
 */
export const gram: GpuTaskHandler<'gram'> = async (scope) => {
  const { rank, weight } = scope.params;
  const factors = scope.matrix('factors');
  const pass = scope.gpu.pass('gram');
  await addGramMatrix(scope.gpu, pass, factors, scope.matrix('gram').values, rank, weight);
  await pass.submit({ submitted: scope.submitted });
  return { rows: factors.rows };
};
