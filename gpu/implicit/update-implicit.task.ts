import type { GpuTaskHandler } from '../handler.ts';
import { variantNamed } from '../update/choice/choose.ts';
import { nameOf, solverOf } from '../update/choice/variant.ts';
import { updateRows } from '../update/half-iteration.ts';

/**
 * The task `update-implicit` (see KernelTasks) on a GPU: solves the rows [from, to) of one side from implicit
 * data, in one submission.
 */
export const updateImplicit: GpuTaskHandler<'update-implicit'> = async (scope) => {
  const {
    from,
    to,
    rank,
    alpha,
    base,
    cgSteps,
    measured,
    anchored,
    variant: name,
    ratingScale = 1,
  } = scope.params;
  if (anchored) throw new Error('task update-implicit: a GPU does not move rows from where they are');
  if (name === undefined) throw new Error('task update-implicit: the device chose no variant');
  const solver = solverOf(scope.params);
  const variant = variantNamed(name, scope.gpu.info, {
    rank,
    biases: false,
    implicit: true,
    cgSteps,
    solver: nameOf(solver),
  });
  const half = variant.precision === 'f16';
  const inputs = {
    block: scope.block('block'),
    fixed: half ? await scope.matrixWithHalf('fixed') : scope.matrix('fixed'),
    previous: scope.matrix('previous'),
    factors: half ? await scope.matrixWithHalf('factors') : scope.matrix('factors'),
    gram: scope.matrix('gram').values,
    shifts: scope.vector('shifts'),
  };
  const { badRow, objective } = await updateRows(
    scope.gpu,
    inputs,
    {
      variant,
      from,
      to,
      rank,
      lambda: 0,
      mean: 0,
      solver,
      measured,
      scale: ratingScale,
      implicit: { alpha, base },
    },
    { submitted: scope.submitted },
  );
  return { rows: to - from, values: { badRow, ...(objective === undefined ? {} : { objective }) } };
};
