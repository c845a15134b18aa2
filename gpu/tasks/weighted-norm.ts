import { NORM_ROWS, weightedNormKernel } from '../kernels/loss/weighted-norm.ts';
import type { GpuTaskHandler } from '../handler.ts';

/** See `weighted-norm` of KernelTasks. Float32 sums of NORM_ROWS rows each, added up in float64 in their order. */
export const weightedNorm: GpuTaskHandler<'weighted-norm'> = async (scope) => {
  const { from, to } = scope.params;
  const { gpu } = scope;
  const { stride, values: factors } = scope.matrix('factors');
  const groups = Math.ceil((to - from) / NORM_ROWS);
  if (groups === 0 || scope.cancelled()) return { rows: to - from, values: { sum: 0 } };
  const kernel = await gpu.compile(weightedNormKernel, {});
  const sums = await gpu.buffer(4 * groups, 'weighted norms');
  try {
    const bindings = { offsets: scope.block('block').rowPointers, factors, sums };
    const { bytes } = await gpu.pass('weighted-norm').dispatch(kernel, bindings, { from_row: from, to_row: to, stride }, groups).submit({ read: { buffer: sums, bytes: 4 * groups }, submitted: scope.submitted });
    return { rows: to - from, bytesDown: 4 * groups, values: { sum: new Float32Array(bytes).reduce((sum, part) => sum + part, 0) } };
  } finally {
    sums.destroy();
  }
};
