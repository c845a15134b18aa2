import { UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { blockOf, type MatrixView, type TaskHandler, valuesOf } from '../handler.ts';
import { priorTotal } from './passes.ts';
import {
  gramAndShifts,
  priorsOf,
  ratingsOf,
  rowChunks,
  rowColumn,
  rowProblem,
  rowsOfChunk,
} from './row-chunks.ts';
import { biasShift, methodOf, rowShift } from './solvers.ts';

/**
 * See `normal-equations` of KernelTasks. The ratings of a row are summed in the workspace, as the task
 * `update` does, and the sums are then added to the row's stored equations.
 */
export const normalEquations: TaskHandler<'normal-equations'> = (scope) => {
  const { from, to, rank, rowStart = 0, implicit } = scope.params;
  const { offsets } = blockOf(scope);
  const [fixed, equations] = [scope.matrix('fixed'), scope.matrix('equations')];
  const isBiased = valuesOf(scope, 'fixedBias') !== undefined;
  const biased = isBiased ? 1 : 0;
  requireEquations('normal-equations', equations, rank, isBiased, to - rowStart);
  const { kernels } = scope;
  const ratings = ratingsOf(scope, scope.params);
  const problem = rowProblem(scope, fixed, implicit !== undefined).set({ theta: fixed.pointer });
  const { address } = problem;
  const workspace = problem.get('workspace');
  const size = fixed.stride * 4;
  let [length, total] = [0, 0];
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, from, to, fixed.stride ** 2 / 40, fixed.stride ** 2 / 16)) {
    const { starts, ends, indices } = chunk;
    bytesUp += 8 * chunk.count + 4 * chunk.rows;
    const { values, weights } = ratings(chunk);
    for (const { row, at, n } of rowsOfChunk(chunk, offsets)) {
      if (starts) [length, total] = [0, 0];
      length += n;
      if (isBiased) total += kernels.sumOf(values + at, n);
      problem.set({ indices: indices + at, values: values + at, weights: weights && weights + at, count: n });
      kernels.accumulateRow(address, biased, starts ? 0 : 1);
      if (!ends) continue;
      const target = equations.pointer + (row - rowStart) * equations.stride * 4;
      kernels.addToEquations(target, size, rank, length, total, biased, workspace);
    }
  }
  return { rows: to - from, bytesUp };
};

/**
 * Throws if a matrix does not have the columns of stored equations (operators/tasks/equation-tasks.ts), or
 * has less than `last` rows.
 */
export function requireEquations(
  task: string,
  { rows, columns }: MatrixView,
  rank: number,
  biases: boolean,
  last: number,
): void {
  const wanted = (rank * (rank + 1)) / 2 + rank + 1 + (biases ? rank + 1 : 0);
  if (columns !== wanted || rows < last)
    throw new Error(
      `task ${task}: a matrix of ${rows} x ${columns} has no place for equations of ${last} rows and rank ${rank}${biases ? ' with biases' : ''}, ${wanted} columns`,
    );
}

/** Rows between two checks for cancellation. */
const ROWS_AT_ONCE = 256;

export const addRows: TaskHandler<'add-rows'> = (scope) => {
  const { from, to } = scope.params;
  const [addend, sum] = [scope.matrix('addend'), scope.matrix('sum')];
  if (addend.rows !== sum.rows || addend.columns !== sum.columns)
    throw new Error(
      `task add-rows: ${addend.rows} x ${addend.columns} numbers cannot be added to ${sum.rows} x ${sum.columns}`,
    );
  for (let row = from; row < to && !scope.cancelled(); row += ROWS_AT_ONCE) {
    const at = row * sum.stride * 4;
    scope.kernels.addMultiple(
      sum.pointer + at,
      1,
      addend.pointer + at,
      (Math.min(to, row + ROWS_AT_ONCE) - row) * sum.stride * 4,
    );
  }
  return { rows: to - from };
};

export const placeRows: TaskHandler<'place-rows'> = (scope) => {
  const { rowFrom } = scope.params;
  if (!scope.hasMatrix('rows')) {
    const [part, whole] = ['rows', 'whole'].map(
      (name) => scope.partition(name).columns.values as Float32Array,
    );
    whole.set(part, rowFrom);
    return { rows: part.length };
  }
  const [rows, whole] = [scope.matrix('rows'), scope.matrix('whole')];
  if (rows.stride !== whole.stride)
    throw new Error(`task place-rows: rows of ${rows.columns} numbers do not fit rows of ${whole.columns}`);
  const elements = new Float32Array(scope.memory.buffer);
  elements.copyWithin(
    whole.pointer / 4 + rowFrom * whole.stride,
    rows.pointer / 4,
    rows.pointer / 4 + rows.rows * rows.stride,
  );
  return { rows: rows.rows };
};

export const scatterRows: TaskHandler<'scatter-rows'> = (scope) => {
  const positions = scope.partition('positions').columns.positions as Uint32Array;
  const [rows, whole] = [scope.matrix('rows'), scope.matrix('whole')];
  const { stride } = whole;
  if (rows.stride !== stride)
    throw new Error(`task scatter-rows: rows of ${rows.columns} numbers do not fit rows of ${whole.columns}`);
  const elements = new Float32Array(scope.memory.buffer);
  const [from, to] = [rows.pointer / 4, whole.pointer / 4];
  for (let row = 0; row < positions.length; row++) {
    const position = positions[row];
    if (position === UNKNOWN_KEY) continue;
    if (position >= whole.rows)
      throw new Error(`task scatter-rows: there is no row ${position}, the matrix has ${whole.rows}`);
    elements.copyWithin(to + position * stride, from + row * stride, from + (row + 1) * stride);
  }
  return { rows: positions.length };
};

export const solveEquations: TaskHandler<'solve-equations'> = (scope) => {
  const { from, to, rank, cgSteps, rowStart = 0 } = scope.params;
  const [equations, factors] = [scope.matrix('equations'), scope.matrix('factors')];
  const previous = scope.matrix('previous');
  const bias = valuesOf(scope, 'bias');
  requireEquations('solve-equations', equations, rank, bias !== undefined, to - rowStart);
  const { kernels } = scope;
  const { gram, shifts } = gramAndShifts(scope);
  const priors = priorsOf(scope);
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
    const [prior, priorBias] = [priors.of(row), priors.biases?.[row] ?? 0];
    own.values[0] = priorBias;
    if (n === 0 && prior) {
      memory.copyWithin(x / 4, prior / 4, prior / 4 + factors.stride);
      if (gram) objective += curvatureOf(memory, gram / 4, x / 4, factors);
    } else if (n === 0) {
      memory.fill(0, x / 4, x / 4 + factors.stride);
    } else {
      kernels.takeEquations(source, size, rank, bias ? 1 : 0, workspace);
      problem.set({
        shift: shifts?.[row] ?? rowShift(n, scope.params),
        x,
        previous: previous.pointer + row * size,
        prior,
      });
      if (bias) {
        const ownShift = biasShift(n, scope.params);
        problem.set({ weight: n + ownShift, ownShift, priorBias });
        problem.set({ total: memory[source / 4 + lengthAt + rank + 1] + priorTotal(problem) });
      }
      const solved = kernels.solveAccumulated(problem.address, methodOf(n, scope.params));
      if (!solved && badRow < 0) badRow = row;
      objective += problem.get('objective');
    }
    if (bias) bias[row] = own.values[0];
  }
  return { rows: to - from, values: { badRow, objective } };
};

/** xᵀG x. `gram`, `x`: their first elements. */
function curvatureOf(memory: Float32Array, gram: number, x: number, { columns, stride }: MatrixView): number {
  let sum = 0;
  for (let i = 0; i < columns; i++)
    for (let j = 0; j < columns; j++) sum += memory[x + i] * memory[gram + i * stride + j] * memory[x + j];
  return sum;
}
