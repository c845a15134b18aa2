/**
 * The tasks of conjugate gradients on several devices (operators/tasks/vector-tasks.ts), each in one
 * submission for all rows of the range.
 */
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { addEquationProducts, addVectorProducts, hasBiases, takeStep } from './exchanged-vectors.ts';

export const addResiduals: GpuTaskHandler<'add-residuals'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const inputs = {
    block: scope.block('block'),
    fixed: scope.matrix('fixed'),
    fixedBias: scope.has('fixedBias') ? scope.vector('fixedBias') : undefined,
    vectors: scope.matrix('previous'),
    sums: scope.matrix('gradients'),
  };
  await addVectorProducts(gpu, inputs, { ...params, first: true }, { submitted });
  return { rows: params.to - params.from };
};

export const addProducts: GpuTaskHandler<'add-products'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const inputs = {
    block: scope.block('block'),
    fixed: scope.matrix('fixed'),
    vectors: scope.matrix('direction'),
    sums: scope.matrix('products'),
  };
  await addVectorProducts(gpu, inputs, { ...params, first: false }, { submitted });
  return { rows: params.to - params.from };
};

export const equationResiduals: GpuTaskHandler<'equation-residuals'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const sums = scope.matrix('gradients');
  const inputs = { equations: scope.matrix('equations'), vectors: scope.matrix('previous'), sums };
  const settings = { ...params, biases: hasBiases(sums, params.rank), first: true };
  await addEquationProducts(gpu, inputs, settings, { submitted });
  return { rows: params.to - params.from };
};

export const equationProducts: GpuTaskHandler<'equation-products'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const inputs = {
    equations: scope.matrix('equations'),
    vectors: scope.matrix('direction'),
    sums: scope.matrix('products'),
  };
  await addEquationProducts(gpu, inputs, { ...params, biases: false, first: false }, { submitted });
  return { rows: params.to - params.from };
};

/** The buffers of both kinds of steps. Implicit data have a Gram matrix, and shifts that contain λ. */
function stepInputs(scope: GpuScopeOf<'begin-gradients'> | GpuScopeOf<'step-gradients'>) {
  return {
    gradients: scope.matrix('gradients'),
    factors: scope.matrix('factors'),
    direction: scope.matrix('direction'),
    ...(scope.has('gram') ? { gram: scope.matrix('gram').values, shifts: scope.vector('shifts') } : {}),
  };
}

export const beginGradients: GpuTaskHandler<'begin-gradients'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  await takeStep(gpu, { given: scope.matrix('previous'), ...stepInputs(scope) }, 'begin', params, {
    submitted,
  });
  return { rows: params.to - params.from };
};

export const stepGradients: GpuTaskHandler<'step-gradients'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  await takeStep(gpu, { given: scope.matrix('products'), ...stepInputs(scope) }, 'step', params, {
    submitted,
  });
  return { rows: params.to - params.from };
};

export const endGradients: GpuTaskHandler<'end-gradients'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const gradients = scope.matrix('gradients');
  const inputs = {
    gradients,
    factors: scope.matrix('factors'),
    ...(hasBiases(gradients, params.rank) ? { bias: scope.vector('bias') } : {}),
  };
  const badRow = await takeStep(gpu, inputs, 'end', params, { submitted });
  return { rows: params.to - params.from, values: { badRow } };
};
