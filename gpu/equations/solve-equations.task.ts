import { equationColumns, equationLayout } from '../../operators/tasks/equation-tasks.ts';
import { slotElements } from '../device/slots.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { addGramKernel } from '../implicit/gram.task.ts';
import { addPriorKernel, endPriorKernel } from '../solve/prior.ts';
import { addMatrixShifts } from '../solve/row-shifts.ts';
import { variantNamed } from '../update/choice/choose.ts';
import { nameOf, solverOf, stepsOf } from '../update/choice/variant.ts';
import { slotsOf } from '../update/prepared-rows.ts';
import { submitSolved } from '../update/solved-pass.ts';
import { fillSlotsKernel } from './equation-slots.ts';
import { compileSolve } from './slot-kernels.ts';

/**
 * The task `solve-equations` (see KernelTasks) on a GPU: solves the rows [from, to) from stored normal
 * equations, in one submission. Equations are copied to slots, the scratch memory that the solvers read, and
 * solved in batches that fit it.
 */
export const solveEquations: GpuTaskHandler<'solve-equations'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const { from, to, rank, rowStart = 0, cgSteps, variant: name } = params;
  if (name === undefined) throw new Error('task solve-equations: the device chose no variant');
  const equations = scope.matrix('equations');
  const biases = equations.columns > equationColumns(rank, false);
  const implicit = scope.has('gram');
  const solver = solverOf(params);
  const prior = scope.has('prior') ? scope.matrix('prior').values : undefined;
  const priorBias = scope.has('priorBias') ? scope.vector('priorBias') : undefined;
  const shape = { rank, biases, implicit, prior: prior !== undefined, cgSteps, solver: nameOf(solver) };
  const variant = variantNamed(name, gpu.info, shape);
  const half = variant.precision !== 'f32';
  const factors = half ? await scope.matrixWithHalf('factors') : scope.matrix('factors');
  const gram = implicit ? scope.matrix('gram').values : undefined;
  const [fill, solve, add, draw, end] = await Promise.all([
    gpu.compile(fillSlotsKernel, { rank, biases }),
    compileSolve(gpu, { variant, rank, solver }, biases),
    gram && gpu.compile(addGramKernel, { rank }),
    prior && gpu.compile(addPriorKernel, { rank, biases, vectors: false }),
    prior && gpu.compile(endPriorKernel, { rank, biases, half, implicit, listed: true }),
  ]);
  const most = Math.max(1, Math.min(to - from, slotsOf(gpu, rank, biases)));
  const slots = await gpu.scratch('slots', most * slotElements(rank, biases) * 4);
  const work = await gpu.scratch('rows of equations', most * 16);
  const outputs = {
    previous: scope.matrix('previous').values,
    factors: factors.values,
    // In WebGPU, two writable bindings must not share a buffer. So each output that is not used gets a
    // scratch buffer of its own.
    half: half ? (factors.half as GPUBuffer) : await gpu.scratch('no half', 16),
    bias: biases ? scope.vector('bias') : await gpu.scratch('no bias', 16),
  };
  const { stride, values: matrix } = equations;
  const counts = { matrix, stride, column: equationLayout(rank).n, row: rowStart };
  const label = `solve-equations ${variant.name}`;
  const { badRow, objective } = await submitSolved(
    gpu,
    label,
    params,
    { submitted },
    async (pass, status) => {
      // With implicit data, `shifts` (the numbers that are added to the diagonals of A) already contain λ.
      const shifts = implicit
        ? scope.vector('shifts')
        : await addMatrixShifts(gpu, pass, counts, params, biases);
      for (let row = from; row < to; row += most) {
        const count = Math.min(most, to - row);
        pass.dispatch(
          fill,
          { equations: matrix, slots, work },
          { count, first: row - rowStart, row, stride },
          count,
        );
        if (add && gram) pass.dispatch(add, { work, gram, slots }, { count }, count);
        const more = priorBias ?? gram ?? prior;
        const own = prior &&
          more && { ...outputs, work, shifts, prior, more, prior_bias: priorBias ?? prior };
        if (draw && own) pass.dispatch(draw, { ...own, slots }, { count }, count);
        pass.dispatch(
          solve.compiled,
          { work, slots, shifts, status, ...outputs },
          { steps: stepsOf(solver), count },
          solve.workgroups(count),
        );
        if (end && own)
          pass.dispatch(end, { ...own, row_pointers: work, status }, { first: row, count }, count);
      }
    },
  );
  return { rows: to - from, values: { badRow, ...(objective === undefined ? {} : { objective }) } };
};
