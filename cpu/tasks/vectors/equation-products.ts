import type { TaskHandler } from '../../handler.ts';
import { requireEquations } from '../equations/equation-shape.ts';
import { gradientOffsets, hasBiases } from './gradient-shape.ts';

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
    const own = gradients.pointer + 4 * gradients.stride * row;
    scope.kernels.addEquationResidual(
      equations.pointer + 4 * equations.stride * row,
      rank,
      previous.pointer + 4 * previous.stride * row,
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
      equations.pointer + 4 * equations.stride * row,
      rank,
      1,
      direction.pointer + 4 * direction.stride * row,
      products.pointer + 4 * products.stride * row,
    );
  return { rows: to - from };
};
