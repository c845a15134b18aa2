import type { GpuTaskHandler } from '../handler.ts';
import { equationValues, fillSlotsKernel } from './equation-slots.ts';
import { variantNamed } from '../update/choice/choose.ts';
import { nameOf, solverOf, stepsOf, type UpdateSettings } from '../update/choice/variant.ts';
import type { DeviceMatrix } from '../device/resources.ts';
import { addGramKernel } from '../implicit/gram.task.ts';
import { slotElements } from '../device/slots.ts';
import { addMatrixShifts } from '../solve/row-shifts.ts';
import { slotsOf } from '../update/prepared-rows.ts';
import { compileSolve } from './slot-kernels.ts';
import { type SolvedPass, submitSolved } from '../update/solved-pass.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { SubmitOptions } from '../webgpu/pass.ts';

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

interface SolveInputs {
  readonly equations: DeviceMatrix;
  readonly previous: DeviceMatrix;
  /**
   * Output: the factors x. If the variant's precision is not f32, x must have a float16 copy, which is
   * written too.
   */
  readonly factors: DeviceMatrix;
  readonly bias?: GPUBuffer;
  /** The Gram matrix Θᵀ Θ of the fixed side (F x F, F: rank padded to whole tiles); implicit data only. */
  readonly gram?: GPUBuffer;
  /**
   * For each row the number that is added to the diagonal of its A. If absent, it is computed from the
   * regularization in the settings.
   */
  readonly shifts?: GPUBuffer;
}

/** Parameters of `solveRows`. `rowStart`: number of the row whose equations are row 0 of `equations`. */
interface SolveSettings extends Omit<UpdateSettings, 'mean' | 'scale' | 'implicit'> {
  readonly rowStart: number;
}

/**
 * Solves the rows [from, to) from their normal equations in one submission. Equations are copied to slots,
 * the scratch memory that the solvers read, and solved in batches that fit it. Returns the lowest row whose
 * solution is not finite, or -1. With `measured` also returns the sum of the rows' objectives xᵀA x - 2 bᵀx,
 * and with `timed` the kernels' times.
 */
export async function solveRows(
  gpu: Gpu,
  { equations, previous, factors, bias, gram, shifts }: SolveInputs,
  settings: SolveSettings,
  options: Pick<SubmitOptions, 'timed' | 'submitted'> = {},
): Promise<SolvedPass> {
  const { variant, from, to, rank, rowStart } = settings;
  const biases = bias !== undefined;
  const [fill, solve, add] = await Promise.all([
    gpu.compile(fillSlotsKernel, { rank, biases }),
    compileSolve(gpu, settings, biases),
    gram && gpu.compile(addGramKernel, { rank }),
  ]);
  const most = Math.max(1, Math.min(to - from, slotsOf(gpu, rank, biases)));
  const slots = await gpu.scratch('slots', most * slotElements(rank, biases) * 4);
  const work = await gpu.scratch('rows of equations', most * 16);
  if (variant.precision !== 'f32' && factors.half === undefined)
    throw new Error('solve-equations: no half mirror of the factors');
  const outputs = {
    previous: previous.values,
    factors: factors.values,
    // In WebGPU, two writable bindings must not share a buffer. So each output that is not used gets a
    // scratch buffer of its own.
    half: (variant.precision !== 'f32' ? factors.half : undefined) ?? (await gpu.scratch('no half', 16)),
    bias: bias ?? (await gpu.scratch('no bias', 16)),
  };
  const { stride } = equations;
  const counts = {
    matrix: equations.values,
    stride,
    column: equationValues({ rank, biases }).N,
    row: rowStart,
  };
  const uniforms = {
    steps: stepsOf(settings.solver),
  };
  return submitSolved(gpu, `solve-equations ${variant.name}`, settings, options, async (pass, status) => {
    const own = shifts ?? (await addMatrixShifts(gpu, pass, counts, settings, biases));
    for (let row = from; row < to; row += most) {
      const count = Math.min(most, to - row);
      pass.dispatch(
        fill,
        { equations: equations.values, slots, work },
        { count, first: row - rowStart, row, stride },
        count,
      );
      if (add && gram) pass.dispatch(add, { work, gram, slots }, { count }, count);
      pass.dispatch(
        solve.compiled,
        { work, slots, shifts: own, status, ...outputs },
        { ...uniforms, count },
        solve.workgroups(count),
      );
    }
  });
}
