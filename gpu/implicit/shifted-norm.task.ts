import type { GpuTaskHandler } from '../handler.ts';
import { shiftedNormKernel } from './shifted-norm.ts';
import { NORM_ROWS } from '../loss/weighted-norm.ts';
import { groupSums } from '../loss/group-sums.ts';

/**
 * See `shifted-norm` of KernelTasks. Float32 sums of NORM_ROWS rows each, added up in float64 in their order.
 */
export const shiftedNorm: GpuTaskHandler<'shifted-norm'> = async (scope) => {
  const { from, to } = scope.params;
  const { stride, values: factors } = scope.matrix('factors');
  const groups = scope.cancelled() ? 0 : Math.ceil((to - from) / NORM_ROWS);
  const sum = await groupSums(
    scope,
    shiftedNormKernel,
    {},
    { shifts: scope.vector('shifts'), factors },
    { from_row: from, to_row: to, stride },
    groups,
  );
  return { rows: to - from, bytesDown: 4 * groups, values: { sum } };
};
