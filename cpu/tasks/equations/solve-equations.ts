import type { ScopeOf, TaskHandler } from '../../handler.ts';
import { biasColumn } from '../biases.ts';
import { lastObjective, rowColumn, workspaceOf } from '../row-chunks.ts';
import { biasShift, rowShift } from '../row-shifts.ts';
import { methodOf } from '../solvers.ts';
import { requireEquations } from './equation-shape.ts';

/** See `solve-equations` of KernelTasks. */
export const solveEquations: TaskHandler<'solve-equations'> = (scope) => {
  const { from, to, rank, rowStart = 0 } = scope.params;
  const [equations, factors] = [scope.matrix('equations'), scope.matrix('factors')];
  const bias = biasColumn(scope, 'bias');
  requireEquations('solve-equations', equations, rank, bias !== undefined, to - rowStart);
  const { kernels } = scope;
  const workspace = workspaceOf(scope);
  const own = rowColumn(scope, 0);
  const size = factors.stride * 4;
  const memory = new Float32Array(scope.memory.buffer);
  const lengthAt = (rank * (rank + 1)) / 2 + rank;
  const total = (source: number) => (bias ? memory[source / 4 + lengthAt + rank + 1] : 0);
  const solve = solverOf(scope, own.address);
  let badRow = -1;
  let objective = 0;
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const source = equations.pointer + (row - rowStart) * equations.stride * 4;
    const target = factors.pointer + row * size;
    const n = memory[source / 4 + lengthAt];
    own.values[0] = 0;
    if (n === 0) {
      memory.fill(0, target / 4, target / 4 + factors.stride);
    } else {
      kernels.takeEquations(source, size, rank, bias ? 1 : 0, workspace);
      const solved = solve(row, n, total(source));
      if (!solved && badRow < 0) badRow = row;
      objective += lastObjective(scope, workspace, size);
    }
    if (bias) bias[row] = own.values[0];
  }
  return { rows: to - from, values: { badRow, objective } };
};

/**
 * Returns the function that solves a row of n ratings whose equations are in the workspace. `total`: the sum
 * of its ratings.
 */
function solverOf(
  scope: ScopeOf<'solve-equations'>,
  biasAt: number,
): (row: number, n: number, total: number) => number {
  const { kernels, params } = scope;
  const { rank, cgSteps } = params;
  const [previous, factors] = [scope.matrix('previous'), scope.matrix('factors')];
  const workspace = workspaceOf(scope);
  const size = factors.stride * 4;
  const addresses = (row: number) => [factors.pointer + row * size, previous.pointer + row * size] as const;
  if (scope.hasInput('gram')) {
    const gram = scope.matrix('gram').pointer;
    const shifts = scope.partition('shifts').columns.values as Float32Array;
    return (row, n) => {
      const [x, x0] = addresses(row);
      const method = methodOf(n, params);
      return kernels.solveAccumulatedImplicit(
        size,
        rank,
        gram,
        shifts[row],
        0,
        x,
        x0,
        method,
        cgSteps,
        workspace,
      );
    };
  }
  const isBiased = biasColumn(scope, 'bias') !== undefined;
  return (row, n, total) => {
    const [x, x0] = addresses(row);
    const shift = rowShift(n, params);
    const weight = isBiased ? n + biasShift(n, params) : 0;
    const method = methodOf(n, params);
    return kernels.solveAccumulated(
      size,
      rank,
      shift,
      weight,
      total,
      biasAt,
      x,
      x0,
      method,
      cgSteps,
      workspace,
    );
  };
}
