import { hasBiases, takeStep } from './exchanged-vectors.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';

/**
 * For implicit data: the Gram matrix of the fixed factors, and the numbers added to the diagonal of A
 * (`shifts`), which contain the regularization.
 */
function shiftedBy(scope: GpuScopeOf<'begin-gradients'> | GpuScopeOf<'step-gradients'>) {
  return scope.has('gram') ? { gram: scope.matrix('gram').values, shifts: scope.vector('shifts') } : {};
}

/** See `begin-gradients` of KernelTasks. */
export const beginGradients: GpuTaskHandler<'begin-gradients'> = async (scope) => {
  const { params } = scope;
  await takeStep(
    scope.gpu,
    {
      given: scope.matrix('previous'),
      gradients: scope.matrix('gradients'),
      factors: scope.matrix('factors'),
      direction: scope.matrix('direction'),
      ...shiftedBy(scope),
    },
    'begin',
    params,
    { submitted: scope.submitted },
  );
  return { rows: params.to - params.from };
};

/** See `step-gradients` of KernelTasks. */
export const stepGradients: GpuTaskHandler<'step-gradients'> = async (scope) => {
  const { params } = scope;
  await takeStep(
    scope.gpu,
    {
      given: scope.matrix('products'),
      gradients: scope.matrix('gradients'),
      factors: scope.matrix('factors'),
      direction: scope.matrix('direction'),
      ...shiftedBy(scope),
    },
    'step',
    params,
    { submitted: scope.submitted },
  );
  return { rows: params.to - params.from };
};

/** See `end-gradients` of KernelTasks. */
export const endGradients: GpuTaskHandler<'end-gradients'> = async (scope) => {
  const { params } = scope;
  const gradients = scope.matrix('gradients');
  const badRow = await takeStep(
    scope.gpu,
    {
      gradients,
      factors: scope.matrix('factors'),
      ...(hasBiases(gradients, params.rank) ? { bias: scope.vector('bias') } : {}),
    },
    'end',
    params,
    { submitted: scope.submitted },
  );
  return { rows: params.to - params.from, values: { badRow } };
};
