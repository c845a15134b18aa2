import type { GpuTaskHandler } from '../handler.ts';
import { variantNamed } from './choice/choose.ts';
import { nameOf, solverOf } from './choice/variant.ts';
import { updateRows } from './half-iteration.ts';

/** The task `update` (see KernelTasks) on a GPU: solves the rows [from, to) of one side in one submission. */
export const update: GpuTaskHandler<'update'> = async (scope) => {
  const {
    from,
    to,
    rank,
    lambda,
    exponent,
    offset,
    damping,
    biasLambda,
    cgSteps,
    mean = 0,
    measured,
    variant: name,
    ratingScale = 1,
  } = scope.params;
  if (name === undefined) throw new Error('task update: the device chose no variant');
  const biases = scope.has('fixedBias');
  const solver = solverOf(scope.params);
  const variant = variantNamed(name, scope.gpu.info, {
    rank,
    biases,
    cgSteps,
    solver: nameOf(solver),
  });
  const half = variant.precision !== 'f32';
  const block = scope.block('block');
  const inputs = {
    block,
    fixed: half ? await scope.matrixWithHalf('fixed') : scope.matrix('fixed'),
    previous: scope.matrix('previous'),
    factors: half ? await scope.matrixWithHalf('factors') : scope.matrix('factors'),
    ...(biases ? { fixedBias: scope.vector('fixedBias'), bias: scope.vector('bias') } : {}),
  };
  const { badRow, objective } = await updateRows(
    scope.gpu,
    inputs,
    {
      variant,
      from,
      to,
      rank,
      lambda,
      exponent,
      offset,
      damping,
      biasLambda,
      mean,
      solver,
      measured,
      scale: ratingScale,
    },
    { submitted: scope.submitted },
  );
  return { rows: to - from, values: { badRow, ...(objective === undefined ? {} : { objective }) } };
};
