import { shrinkRowsKernel, shrinkRowsWorkgroups } from './shrink-rows.ts';
import type { GpuTaskHandler } from '../handler.ts';

/**
 * The task `shrink-rows` (see KernelTasks) on a GPU: applies an epoch's regularization to all rows of factors
 * at once.
 */
export const shrinkRows: GpuTaskHandler<'shrink-rows'> = async (scope) => {
  const { from, to, rate, offset, damping, adaptive } = scope.params;
  const { gpu } = scope;
  const { rows, stride, values: factors } = scope.matrix('factors');
  if (from !== 0 || to !== rows)
    throw new Error(`task shrink-rows: a GPU takes all ${rows} rows at once, got ${from} to ${to}`);
  const { own = stride, one = stride } = scope.params;
  const quads = (rows * stride) / 4;
  const kernel = await gpu.compile(shrinkRowsKernel, { adaptive });
  const sums = adaptive ? scope.matrix('sums').values : await gpu.scratch('no sums', 16);
  const uniforms = { quads, row_quads: stride / 4, rate, offset, damping, own, one };
  await gpu
    .pass('shrink-rows')
    .dispatch(kernel, { sums, factors }, uniforms, shrinkRowsWorkgroups(quads))
    .submit({ submitted: scope.submitted });
  return { rows };
};
