import { matrixElements, paddedRank, slotElements } from '../device/slots.ts';
import { kernelOf } from '../webgpu/kernel.ts';

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

/**
 * Adds partial normal equations to the equations of rows. Parts of a row were summed into slots (layout:
 * device/slots.ts). For each entry (row, first slot, n, number of slots) of the list, this kernel sums the
 * slots in a fixed order and adds the sum, and n, to the row's equations (layout:
 * operators/tasks/equation-tasks.ts).
 */
export const addSlotsKernel = kernelOf<EquationsParams>()({
  name: 'add-slots',
  reads: { work: 'array<vec4u>', slots: 'array<f32>' },
  writes: { equations: 'array<f32>' },
  uniforms: {
    count: 'u32',

    /**
     * row_start: number of the row that is stored first in `equations`. stride: float32 elements of a row
     * there.
     */
    row_start: 'u32',
    stride: 'u32',
  },
  values: equationValues,
  samples: [
    { rank: 40, biases: false },
    { rank: 64, biases: true },
  ],
});

/**
 * Copies normal equations to slots, the layout that the solvers read: each row of `equations` (layout:
 * operators/tasks/equation-tasks.ts) to one slot (layout: device/slots.ts). Also writes the list of rows for
 * the solvers, with the entries (row, slot, n, 1), or (row, slot, 0, 0) without ratings.
 */
export const fillSlotsKernel = kernelOf<EquationsParams>()({
  name: 'fill-slots',
  reads: { equations: 'array<f32>' },
  writes: { slots: 'array<f32>', work: 'array<vec4u>' },
  uniforms: {
    count: 'u32',

    /**
     * first: index in `equations` of the first row to copy. row: that row's number in the solvers' outputs.
     */
    first: 'u32',
    row: 'u32',

    /** Float32 elements of a row of `equations`. */
    stride: 'u32',
  },
  values: equationValues,
  samples: [
    { rank: 40, biases: false },
    { rank: 64, biases: true },
  ],
});
