import type { TaskHandler } from '../handler.ts';

/** See `gram` of KernelTasks. Each slice reads all rows of θ, which takes some milliseconds. */
export const gram: TaskHandler<'gram'> = (scope) => {
  const { from, to, weight } = scope.params;
  const factors = scope.matrix('factors');
  const { pointer, stride } = scope.matrix('gram');
  // The last slice also writes the padding.
  const end = Math.min(stride, Math.ceil(to / 8) * 8);
  scope.kernels.gramRows(
    factors.pointer,
    4 * stride,
    factors.rows,
    from,
    end,
    weight,
    pointer,
    scope.scratch,
  );
  return { rows: to - from };
};
