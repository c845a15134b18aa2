import { addEquations, summingNamed } from './add-equations.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { equationValues } from './equation-slots.ts';

/**
 * The task `normal-equations` (see KernelTasks) on a GPU: adds the ratings of the rows [from, to) to their
 * normal equations, in one submission.
 */
export const normalEquations: GpuTaskHandler<'normal-equations'> = async (scope) => {
  const { from, to, rank, rowStart = 0, mean = 0, implicit, variant: name, ratingScale = 1 } = scope.params;
  if (name === undefined) throw new Error('task normal-equations: the device chose no variant');
  const biases = scope.has('fixedBias');
  const variant = summingNamed(scope.gpu, name, { rank, biases, implicit: implicit !== undefined });
  const inputs = {
    block: scope.block('block'),
    fixed: variant.precision !== 'f32' ? await scope.matrixWithHalf('fixed') : scope.matrix('fixed'),
    fixedBias: biases ? scope.vector('fixedBias') : undefined,
    equations: scope.matrix('equations'),
  };
  const { COLUMNS: columns } = equationValues({ rank, biases });
  if (inputs.equations.columns !== columns)
    throw new Error(
      `task normal-equations: rank ${rank}${biases ? ' with biases' : ''} needs ${columns} columns, ` +
        `and there are ${inputs.equations.columns}`,
    );
  await addEquations(
    scope.gpu,
    inputs,
    { variant, from, to, rank, rowStart, mean, scale: ratingScale, implicit },
    { submitted: scope.submitted },
  );
  return { rows: to - from };
};
