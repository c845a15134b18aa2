import type { RowRegularization } from '../../operators/tasks/tasks.ts';

/**
 * The numbers by which kernels regularize rows and, with biases, the rows' biases: see parts/row-shift.wgsl.
 */
export const regularizationUniforms = [
  { name: 'lambda', type: 'f32' },
  { name: 'exponent', type: 'f32' },
  { name: 'offset', type: 'f32' },
  { name: 'damping', type: 'f32' },
  { name: 'bias_lambda', type: 'f32' },
] as const;

export function regularizationValues({
  lambda,
  exponent = 1,
  offset = 0,
  damping = 0,
  biasLambda = lambda,
}: RowRegularization) {
  return { lambda, exponent, offset, damping, bias_lambda: biasLambda };
}
