import type { GpuTaskHandler } from '../handler.ts';
import { IMPLICIT_ERROR_RATINGS, implicitErrorKernel } from './implicit-error.ts';
import { groupSums } from '../loss/group-sums.ts';

/**
 * The task `implicit-error` (see KernelTasks) on a GPU. Each workgroup writes the float32 sum of
 * IMPLICIT_ERROR_RATINGS ratings; the host adds these sums in order in float64.
 */
export const implicitError: GpuTaskHandler<'implicit-error'> = async (scope) => {
  const { from, to, alpha, base } = scope.params;
  const block = scope.block('block');
  const rowFactors = scope.matrix('rowFactors');
  const [first, last] = [block.offsets[from], block.offsets[to]];
  const groups = scope.cancelled() ? 0 : Math.ceil((last - first) / IMPLICIT_ERROR_RATINGS);
  const bindings = {
    row_pointers: block.rowPointers,
    indices: block.indices,
    values: block.values,
    row_factors: rowFactors.values,
    column_factors: scope.matrix('columnFactors').values,
  };
  const sum = await groupSums(
    scope,
    implicitErrorKernel,
    { stride: rowFactors.stride },
    bindings,
    { from_row: from, to_row: to, first, last, alpha, base },
    groups,
  );
  return { rows: to - from, bytesDown: 4 * groups, values: { sum } };
};
