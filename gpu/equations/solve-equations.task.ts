import { solveRows } from './solve-equations.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { equationValues } from './equation-slots.ts';
import { variantNamed } from '../update/choice/choose.ts';
import { nameOf, solverOf } from '../update/choice/variant.ts';

/**
 * The task `solve-equations` (see KernelTasks) on a GPU: solves the rows [from, to) from stored normal
 * equations, in one submission.
 */
export const solveEquations: GpuTaskHandler<'solve-equations'> = async (scope) => {
  const {
    from,
    to,
    rank,
    rowStart = 0,
    cgSteps,
    measured,
    variant: name,
    lambda,
    exponent,
    offset,
    damping,
    biasLambda,
  } = scope.params;
  if (name === undefined) throw new Error('task solve-equations: the device chose no variant');
  const equations = scope.matrix('equations');
  const biases = equations.columns > equationValues({ rank, biases: false }).COLUMNS;
  const implicit = scope.has('gram');
  const solver = solverOf(scope.params);
  const variant = variantNamed(name, scope.gpu.info, {
    rank,
    biases,
    implicit,
    cgSteps,
    solver: nameOf(solver),
  });
  const inputs = {
    equations,
    previous: scope.matrix('previous'),
    factors: variant.precision !== 'f32' ? await scope.matrixWithHalf('factors') : scope.matrix('factors'),
    bias: biases ? scope.vector('bias') : undefined,
    ...(implicit ? { gram: scope.matrix('gram').values, shifts: scope.vector('shifts') } : {}),
  };
  // With implicit data, `shifts` (the numbers that are added to the diagonals of A) already contain λ.
  const regularization = implicit ? { lambda: 0 } : { lambda, exponent, offset, damping, biasLambda };
  const { badRow, objective } = await solveRows(
    scope.gpu,
    inputs,
    { variant, from, to, rank, rowStart, solver, measured, ...regularization },
    { submitted: scope.submitted },
  );
  return { rows: to - from, values: { badRow, ...(objective === undefined ? {} : { objective }) } };
};
