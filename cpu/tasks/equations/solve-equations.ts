import type { TaskHandler } from '../../handler.ts';
import { biasColumn } from '../biases.ts';
import { lastObjective, rowColumn, workspaceOf } from '../row-chunks.ts';
import { biasShift, rowShift } from '../row-shifts.ts';
import { methodOf } from '../solvers.ts';
import { requireEquations } from './equation-shape.ts';

/** See `solve-equations` of KernelTasks. */
export const solveEquations: TaskHandler<'solve-equations'> = (scope) => {
  const { from, to, rank, rowStart = 0, cgSteps } = scope.params;
  const [equations, previous, factors] = [
    scope.matrix('equations'),
    scope.matrix('previous'),
    scope.matrix('factors'),
  ];
  const bias = biasColumn(scope, 'bias');
  const gram = scope.hasInput('gram') ? scope.matrix('gram').pointer : undefined;
  const shifts = gram === undefined ? undefined : (scope.partition('shifts').columns.values as Float32Array);
  requireEquations('solve-equations', equations, rank, bias !== undefined, to - rowStart);
  const { kernels } = scope;
  const workspace = workspaceOf(scope);
  const own = rowColumn(scope, 0);
  const size = factors.stride * 4;
  const memory = new Float32Array(scope.memory.buffer);
  const lengthAt = (rank * (rank + 1)) / 2 + rank;
  let badRow = -1;
  let objective = 0;
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const source = equations.pointer + (row - rowStart) * equations.stride * 4;
    const [target, start] = [factors.pointer + row * size, previous.pointer + row * size];
    const n = memory[source / 4 + lengthAt];
    own.values[0] = 0;
    if (n === 0) {
      memory.fill(0, target / 4, target / 4 + factors.stride);
    } else {
      kernels.takeEquations(source, size, rank, bias ? 1 : 0, workspace);
      const method = methodOf(n, scope.params);
      const shift = rowShift(n, scope.params);
      const weight = bias ? n + biasShift(n, scope.params) : 0;
      const total = bias ? memory[source / 4 + lengthAt + rank + 1] : 0;
      const solved =
        gram !== undefined && shifts !== undefined
          ? kernels.solveAccumulatedImplicit(
              size,
              rank,
              gram,
              shifts[row],
              0,
              target,
              start,
              method,
              cgSteps,
              workspace,
            )
          : kernels.solveAccumulated(
              size,
              rank,
              shift,
              weight,
              total,
              own.address,
              target,
              start,
              method,
              cgSteps,
              workspace,
            );
      if (!solved && badRow < 0) badRow = row;
      objective += lastObjective(scope, workspace, size);
    }
    if (bias) bias[row] = own.values[0];
  }
  return { rows: to - from, values: { badRow, objective } };
};
