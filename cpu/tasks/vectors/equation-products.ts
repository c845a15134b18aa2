import type { TaskHandler } from '../../handler.ts';
import { requireEquations } from '../equations/equation-shape.ts';
import { gradientOffsets, hasBiases, rowAddress } from './gradient-shape.ts';

/** See `equation-residuals` of KernelTasks. */
export const equationResiduals: TaskHandler<'equation-residuals'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [equations, previous, gradients] = [
    scope.matrix('equations'),
    scope.matrix('previous'),
    scope.matrix('gradients'),
  ];
  const biases = hasBiases(gradients, rank);
  requireEquations('equation-residuals', equations, rank, biases, to);
  const { scalars, sums } = gradientOffsets('equation-residuals', gradients, rank, biases, to);
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const own = rowAddress(gradients, row);
    scope.kernels.addEquationResidual(
      rowAddress(equations, row),
      rank,
      rowAddress(previous, row),
      own,
      own + scalars,
      sums && own + sums,
    );
  }
  return { rows: to - from };
};

/** See `equation-products` of KernelTasks. */
export const equationProducts: TaskHandler<'equation-products'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [equations, direction, products] = [
    scope.matrix('equations'),
    scope.matrix('direction'),
    scope.matrix('products'),
  ];
  for (let row = from; row < to && !scope.cancelled(); row++)
    scope.kernels.addTriangleProducts(
      rowAddress(equations, row),
      rank,
      1,
      rowAddress(direction, row),
      rowAddress(products, row),
    );
  return { rows: to - from };
};
