import { matrixElements, paddedRank, slotElements } from '../../device/slots.ts';

/** The shape of equations: see operators/tasks/equation-tasks.ts. */
export type EquationsParams = { readonly rank: number; readonly biases: boolean };

/** Threads that serve a row. */
export const THREADS = 256;

/**
 * Template values of the kernels that convert between equations and slots: offsets of the columns of
 * equations, and offsets in a slot.
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
