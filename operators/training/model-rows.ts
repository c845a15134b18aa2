import { readRows, type RowParts } from '../../engine/row-parts.ts';

/** X and Θ of a model after training; see modelRows for the two features that biases add. */
export interface ModelRows {
  readonly users: RowParts;
  readonly items: RowParts;
}

/** Both sides as matrices. */
export function joinedRows({ users, items }: ModelRows): {
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
} {
  return {
    userFactors: readRows(users, 0, users.rows, true),
    itemFactors: readRows(items, 0, items.rows, true),
  };
}
