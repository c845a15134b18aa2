import { matrixElements, paddedRank, slotElements } from '../../device/slots.ts';

/** Shape of the normal equations; see operators/tasks/equation-tasks.ts for their layout. */
export type EquationsParams = { readonly rank: number; readonly biases: boolean };

/** Threads of a workgroup; a workgroup has one row. */
export const THREADS = 256;

/**
 * Template values of the kernels that copy normal equations between two layouts: rows of a matrix
 * (operators/tasks/equation-tasks.ts) and slots (device/slots.ts). B, N: first columns of b and n in such a
 * row; COLUMNS: its length; SLOT: length of a slot; SLOT_B: offset of b in a slot.
 */
export function equationValues({ rank, biases }: EquationsParams) {
  const b = (rank * (rank + 1)) / 2;
  const n = b + rank;
  return {
    biases,
    RANK: rank,
    PADDED: paddedRank(rank),
    B: b,
    N: n,
    COLUMNS: n + 1 + (biases ? rank + 1 : 0),
    SLOT: slotElements(rank, biases),
    SLOT_B: matrixElements(rank),
    THREADS,
  };
}
