import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { variantNamed } from './choice/choose.ts';
import { nameOf, solverOf, type UpdateSettings } from './choice/variant.ts';
import { type UpdateInputs, updateRows } from './half-iteration.ts';

/** The task `update` (see KernelTasks) on a GPU: solves the rows [from, to) of one side in one submission. */
export const update: GpuTaskHandler<'update'> = async (scope) => {
  const { lambda, exponent, offset, damping, biasLambda, mean = 0 } = scope.params;
  const biases = scope.has('fixedBias');
  return solve(
    scope,
    { lambda, exponent, offset, damping, biasLambda, mean },
    biases ? { fixedBias: scope.vector('fixedBias'), bias: scope.vector('bias') } : {},
  );
};

/** The task `update-implicit`: the same from implicit data. */
export const updateImplicit: GpuTaskHandler<'update-implicit'> = async (scope) => {
  const { alpha, base, anchored } = scope.params;
  if (anchored) throw new Error('task update-implicit: a GPU does not move rows from where they are');
  return solve(
    scope,
    { lambda: 0, mean: 0, implicit: { alpha, base } },
    { gram: scope.matrix('gram').values, shifts: scope.vector('shifts') },
  );
};

async function solve(
  scope: GpuScopeOf<'update'> | GpuScopeOf<'update-implicit'>,
  settings: Omit<UpdateSettings, 'variant' | 'from' | 'to' | 'rank' | 'solver' | 'measured' | 'scale'>,
  inputs: Omit<UpdateInputs, 'block' | 'fixed' | 'previous' | 'factors'>,
) {
  const { gpu, params, submitted } = scope;
  const { from, to, rank, cgSteps, measured, variant: name, ratingScale = 1 } = params;
  const implicit = settings.implicit !== undefined;
  if (name === undefined)
    throw new Error(`task update${implicit ? '-implicit' : ''}: the device chose no variant`);
  const solver = solverOf(params);
  const shape = { rank, biases: inputs.bias !== undefined, implicit, cgSteps, solver: nameOf(solver) };
  const variant = variantNamed(name, gpu.info, shape);
  const matrix = (of: 'fixed' | 'factors') =>
    variant.precision === 'f32' ? scope.matrix(of) : scope.matrixWithHalf(of);
  const { badRow, objective } = await updateRows(
    gpu,
    {
      block: scope.block('block'),
      fixed: await matrix('fixed'),
      previous: scope.matrix('previous'),
      factors: await matrix('factors'),
      ...inputs,
    },
    { ...settings, variant, from, to, rank, solver, measured, scale: ratingScale },
    { submitted },
  );
  return { rows: to - from, values: { badRow, ...(objective === undefined ? {} : { objective }) } };
}
