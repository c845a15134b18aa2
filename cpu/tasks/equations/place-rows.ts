import type { TaskHandler } from '../../handler.ts';

/** See `place-rows` of KernelTasks. */
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
