import { addVectorProducts } from './exchanged-vectors.ts';
import type { GpuTaskHandler } from '../handler.ts';

/** See `add-residuals` of KernelTasks: one submission for all rows of the range. */
export const addResiduals: GpuTaskHandler<'add-residuals'> = async (scope) => {
  const { from, to, rank, mean, implicit } = scope.params;
  const inputs = {
    block: scope.block('block'),
    fixed: scope.matrix('fixed'),
    fixedBias: scope.has('fixedBias') ? scope.vector('fixedBias') : undefined,
    vectors: scope.matrix('previous'),
    sums: scope.matrix('gradients'),
  };
  await addVectorProducts(
    scope.gpu,
    inputs,
    { rank, from, to, mean, implicit, first: true },
    { submitted: scope.submitted },
  );
  return { rows: to - from };
};

/** See `add-products` of KernelTasks. */
export const addProducts: GpuTaskHandler<'add-products'> = async (scope) => {
  const { from, to, rank, implicit } = scope.params;
  const inputs = {
    block: scope.block('block'),
    fixed: scope.matrix('fixed'),
    vectors: scope.matrix('direction'),
    sums: scope.matrix('products'),
  };
  await addVectorProducts(
    scope.gpu,
    inputs,
    { rank, from, to, implicit, first: false },
    { submitted: scope.submitted },
  );
  return { rows: to - from };
};
