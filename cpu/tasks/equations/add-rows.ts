import type { TaskHandler } from '../../handler.ts';

/** Rows between two checks for cancellation. */
const ROWS_AT_ONCE = 256;

/** See `add-rows` of KernelTasks. */
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
