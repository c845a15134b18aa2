import type { TaskHandler } from '../../handler.ts';
import { biasColumn, gramAndShifts, rowColumn, rowProblem } from '../row-chunks.ts';
import { biasShift, methodOf, rowShift } from '../solvers.ts';
import { requireEquations } from './equation-shape.ts';

/** See `solve-equations` of KernelTasks. */
export const solveEquations: TaskHandler<'solve-equations'> = (scope) => {
  const { from, to, rank, cgSteps, rowStart = 0 } = scope.params;
  const [equations, factors] = [scope.matrix('equations'), scope.matrix('factors')];
  const previous = scope.matrix('previous');
  const bias = biasColumn(scope, 'bias');
  requireEquations('solve-equations', equations, rank, bias !== undefined, to - rowStart);
  const { kernels } = scope;
  const { gram, shifts } = gramAndShifts(scope);
  const own = rowColumn(scope, 0);
  const problem = rowProblem(scope, factors).set({ gram, steps: cgSteps, bias: bias ? own.address : 0 });
  const workspace = problem.get('workspace');
  const size = factors.stride * 4;
  const memory = new Float32Array(scope.memory.buffer);
  const lengthAt = (rank * (rank + 1)) / 2 + rank;
  let badRow = -1;
  let objective = 0;
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const source = equations.pointer + (row - rowStart) * equations.stride * 4;
    const x = factors.pointer + row * size;
    const n = memory[source / 4 + lengthAt];
    own.values[0] = 0;
    if (n === 0) {
      memory.fill(0, x / 4, x / 4 + factors.stride);
    } else {
      kernels.takeEquations(source, size, rank, bias ? 1 : 0, workspace);
      problem.set({
        shift: shifts?.[row] ?? rowShift(n, scope.params),
        x,
        previous: previous.pointer + row * size,
      });
      if (bias)
        problem.set({
          weight: n + biasShift(n, scope.params),
          total: memory[source / 4 + lengthAt + rank + 1],
        });
      const solved = kernels.solveAccumulated(problem.address, methodOf(n, scope.params));
      if (!solved && badRow < 0) badRow = row;
      objective += problem.get('objective');
    }
    if (bias) bias[row] = own.values[0];
  }
  return { rows: to - from, values: { badRow, objective } };
};
