import type { GpuTaskHandler } from '../handler.ts';
import { addEquationProducts } from './equation-products.ts';
import { hasBiases } from './exchanged-vectors.ts';

/** See `equation-residuals` of KernelTasks. */
export const equationResiduals: GpuTaskHandler<'equation-residuals'> = async (scope) => {
  const { from, to, rank } = scope.params;
  const sums = scope.matrix('gradients');
  await addEquationProducts(
    scope.gpu,
    { equations: scope.matrix('equations'), vectors: scope.matrix('previous'), sums },
    { rank, biases: hasBiases(sums, rank), first: true, from, to },
    { submitted: scope.submitted },
  );
  return { rows: to - from };
};

/** See `equation-products` of KernelTasks. */
export const equationProducts: GpuTaskHandler<'equation-products'> = async (scope) => {
  const { from, to, rank } = scope.params;
  await addEquationProducts(
    scope.gpu,
    {
      equations: scope.matrix('equations'),
      vectors: scope.matrix('direction'),
      sums: scope.matrix('products'),
    },
    { rank, biases: false, first: false, from, to },
    { submitted: scope.submitted },
  );
  return { rows: to - from };
};
