import type { TaskHandler } from '../../handler.ts';
import { biasColumn } from '../biases.ts';
import { rowColumn, workspaceOf } from '../row-chunks.ts';
import { biasShift, rowShift } from '../row-shifts.ts';
import { gradientOffsets, hasBiases, shiftedBy } from './gradient-shape.ts';

/** See `begin-gradients` of KernelTasks. */
export const beginGradients: TaskHandler<'begin-gradients'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [previous, gradients, factors, direction] = [
    scope.matrix('previous'),
    scope.matrix('gradients'),
    scope.matrix('factors'),
    scope.matrix('direction'),
  ];
  const { gram, shifts } = shiftedBy(scope);
  const { scalars, sums } = gradientOffsets(
    'begin-gradients',
    gradients,
    rank,
    hasBiases(gradients, rank),
    to,
  );
  const memory = new Float32Array(scope.memory.buffer);
  const size = 4 * factors.stride;
  memory.copyWithin(
    factors.pointer / 4 + from * factors.stride,
    previous.pointer / 4 + from * factors.stride,
    previous.pointer / 4 + to * factors.stride,
  );
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const own = gradients.pointer + 4 * gradients.stride * row;
    const n = memory[(own + scalars) / 4];
    scope.kernels.beginVectors(
      size,
      gram,
      shifts?.[row] ?? rowShift(n, scope.params),
      n + biasShift(n, scope.params),
      own,
      own + scalars,
      n > 0 && sums ? own + sums : 0,
      factors.pointer + size * row,
      direction.pointer + size * row,
    );
  }
  return { rows: to - from };
};

/** See `step-gradients` of KernelTasks. */
export const stepGradients: TaskHandler<'step-gradients'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [products, gradients, factors, direction] = [
    scope.matrix('products'),
    scope.matrix('gradients'),
    scope.matrix('factors'),
    scope.matrix('direction'),
  ];
  const { gram, shifts } = shiftedBy(scope);
  const { scalars, sums } = gradientOffsets(
    'step-gradients',
    gradients,
    rank,
    hasBiases(gradients, rank),
    to,
  );
  const memory = new Float32Array(scope.memory.buffer);
  const work = workspaceOf(scope);
  const size = 4 * factors.stride;
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const own = gradients.pointer + 4 * gradients.stride * row;
    const n = memory[(own + scalars) / 4];
    const [x, p, q] = [factors, direction, products].map(({ pointer }) => pointer + size * row);
    scope.kernels.stepVectors(
      size,
      gram,
      shifts?.[row] ?? rowShift(n, scope.params),
      n + biasShift(n, scope.params),
      own,
      own + scalars,
      n > 0 && sums ? own + sums : 0,
      x,
      p,
      q,
      work,
    );
  }
  return { rows: to - from };
};

/** See `end-gradients` of KernelTasks. */
export const endGradients: TaskHandler<'end-gradients'> = (scope) => {
  const { from, to, rank } = scope.params;
  const [gradients, factors] = [scope.matrix('gradients'), scope.matrix('factors')];
  const bias = biasColumn(scope, 'bias');
  const { scalars, sums } = gradientOffsets('end-gradients', gradients, rank, bias !== undefined, to);
  const memory = new Float32Array(scope.memory.buffer);
  const solved = rowColumn(scope, 0);
  const size = 4 * factors.stride;
  let badRow = -1;
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const own = gradients.pointer + 4 * gradients.stride * row;
    const n = memory[(own + scalars) / 4];
    const x = factors.pointer + size * row;
    solved.values[0] = 0;
    if (n === 0) memory.fill(0, x / 4, x / 4 + factors.stride);
    else if (
      !scope.kernels.endVectors(
        size,
        n + biasShift(n, scope.params),
        own + scalars,
        sums && own + sums,
        bias ? solved.address : 0,
        x,
      ) &&
      badRow < 0
    )
      badRow = row;
    if (bias) bias[row] = solved.values[0];
  }
  return { rows: to - from, values: { badRow } };
};
