import { blockOf, type MatrixView, type TaskHandler, type TaskScope } from '../handler.ts';

/** Rows of a matrix that are interleaved in a row of panels. */
const PANEL = 8;
/** Rows and columns of a square of a matrix that is copied at a time. */
const SQUARE = 64;

export const countPairsOfItems: TaskHandler<'count-pairs-of-items'> = (scope) => {
  const { from, to, lambda } = scope.params;
  const [byUser, byItem] = [blockOf(scope, 'byUser'), blockOf(scope, 'byItem')];
  const [matrix, { stride }] = [numbersOf(scope, 'matrix'), scope.matrix('matrix')];
  for (let item = from; item < to && !scope.cancelled(); item++) {
    const row = matrix.subarray(item * stride, (item + 1) * stride).fill(0);
    for (let k = byItem.offsets[item]; k < byItem.offsets[item + 1]; k++) {
      const user = byItem.indices[k];
      for (let j = byUser.offsets[user]; j < byUser.offsets[user + 1] && byUser.indices[j] <= item; j++)
        row[byUser.indices[j]]++;
    }
    row[item] += lambda;
  }
  return { rows: to - from };
};

export const beginSweep: TaskHandler<'begin-sweep'> = (scope) => {
  const { first, count } = scope.params;
  const { rows, stride } = scope.matrix('matrix');
  const [matrix, panels] = [numbersOf(scope, 'matrix'), numbersOf(scope, 'panels').fill(0)];
  const element = (row: number, column: number) =>
    row >= column ? matrix[row * stride + column] : matrix[column * stride + row];
  for (let row = 0; row < rows; row++) {
    const at = Math.floor(row / PANEL) * PANEL * count + (row % PANEL);
    for (let k = 0; k < count; k++) panels[at + PANEL * k] = element(row, first + k);
  }
  const block = new Float64Array(count * count);
  for (let i = 0; i < count; i++)
    for (let j = 0; j < count; j++) block[i * count + j] = element(first + i, first + j);
  invert(block, count);
  const inverse = numbersOf(scope, 'inverse').fill(0);
  const { stride: width } = scope.matrix('inverse');
  for (let i = 0; i < count; i++) inverse.set(block.subarray(i * count, (i + 1) * count), i * width);
  return { rows };
};

export const sweepRows: TaskHandler<'sweep-rows'> = (scope) => {
  const { from, to, first, count } = scope.params;
  const { pointer, stride } = scope.matrix('matrix');
  const { pointer: panels } = scope.matrix('panels');
  const { pointer: inverse, stride: width } = scope.matrix('inverse');
  scope.kernels.sweepRows(
    pointer,
    4 * stride,
    panels,
    inverse,
    4 * width,
    first,
    count,
    from,
    to,
    scope.scratch,
  );
  return { rows: to - from };
};

export const mirrorRows: TaskHandler<'mirror-rows'> = (scope) => {
  const { from, to } = scope.params;
  const { rows, stride } = scope.matrix('matrix');
  const matrix = numbersOf(scope, 'matrix');
  for (let left = from; left < rows && !scope.cancelled(); left += SQUARE)
    for (let row = from; row < to; row++)
      for (let column = Math.max(left, row + 1); column < Math.min(rows, left + SQUARE); column++)
        matrix[row * stride + column] = matrix[column * stride + row];
  return { rows: to - from };
};

/** The numbers of a matrix in the shared memory, with padding. */
export function numbersOf(scope: Pick<TaskScope, 'matrix' | 'memory'>, name: string): Float32Array {
  const { pointer, rows, stride }: MatrixView = scope.matrix(name);
  return new Float32Array(scope.memory.buffer, pointer, rows * stride);
}

/** Inverts a symmetric positive definite matrix in place (Gauss and Jordan, which needs no pivots here). */
function invert(matrix: Float64Array, n: number): void {
  for (let k = 0; k < n; k++) {
    const pivot = 1 / matrix[k * n + k];
    matrix[k * n + k] = 1;
    for (let j = 0; j < n; j++) matrix[k * n + j] *= pivot;
    for (let i = 0; i < n; i++) {
      if (i === k) continue;
      const factor = matrix[i * n + k];
      matrix[i * n + k] = 0;
      for (let j = 0; j < n; j++) matrix[i * n + j] -= factor * matrix[k * n + j];
    }
  }
}
