import type { RowRegularization } from '../../operators/tasks/task-types.ts';

/**
 * The numbers by which kernels regularize rows and, with biases, the rows' biases: see parts/row-shift.wgsl.
 */
export const regularizationUniforms = {
  lambda: 'f32',
  exponent: 'f32',
  offset: 'f32',
  damping: 'f32',
  bias_lambda: 'f32',
} as const;

export function regularizationValues({
  lambda,
  exponent = 1,
  offset = 0,
  damping = 0,
  biasLambda = lambda,
}: RowRegularization) {
  return { lambda, exponent, offset, damping, bias_lambda: biasLambda };
}
