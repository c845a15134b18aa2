import { UNKNOWN_KEY } from '../../../engine/keys/key-column.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `scatter-rows` of KernelTasks. */
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
