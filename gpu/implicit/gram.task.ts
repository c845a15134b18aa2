import type { GpuTaskHandler } from '../handler.ts';
import { addGramMatrix } from './gram.ts';

/** See `gram` of KernelTasks: all rows at once, in float32. */
export const gram: GpuTaskHandler<'gram'> = async (scope) => {
  const { rank, weight } = scope.params;
  const factors = scope.matrix('factors');
  const pass = scope.gpu.pass('gram');
  await addGramMatrix(scope.gpu, pass, factors, scope.matrix('gram').values, rank, weight);
  await pass.submit({ submitted: scope.submitted });
  return { rows: factors.rows };
};
