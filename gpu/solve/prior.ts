import { matrixElements, paddedRank, slotElements } from '../device/slots.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import { vectorQuads } from '../vectors/vectors.ts';
import { shiftValues, type SolvedForm, solvedRows } from './row-shifts.ts';

export type AddPriorParams = Pick<SolvedForm, 'rank' | 'biases'> & {
  /** True: slots of CG by vectors, with the residual for `previous`. False: slots of normal equations. */
  readonly vectors: boolean;
};

/**
 * Draws rows to their priors a, and biases to β₀, before they are solved: adds shift a to b (or to the residual),
 * and the bias's own shift times β₀ to t, in the first slot of each row (layouts: device/slots.ts and
 * vectors/vectors.ts). `previous` is only read for vectors.
 */
export const addPriorKernel = kernelOf<AddPriorParams>()({
  name: 'add-prior',
  reads: {
    work: 'array<vec4u>',
    shifts: 'array<f32>',
    prior: 'array<f32>',
    prior_bias: 'array<f32>',
    previous: 'array<f32>',
  },
  writes: { slots: 'array<f32>' },
  uniforms: { count: 'u32' },
  values: ({ rank, biases, vectors }) => {
    const padded = paddedRank(rank);
    const first = vectors ? 0 : matrixElements(rank);
    return {
      biases,
      along: vectors,
      ...shiftValues(biases),
      RANK: rank,
      PADDED: padded,
      SLOT: vectors ? 4 * vectorQuads(rank, biases).slot : slotElements(rank, biases),
      SLOT_B: first,
      // t, and in slots of vectors after it bᵀx.
      SLOT_T: vectors ? padded + 1 : first + 2 * padded,
      THREADS: 64,
    };
  },
  bytes: 4 * 64,
  samples: [
    { rank: 40, biases: true, vectors: false },
    { rank: 264, biases: true, vectors: true },
    { rank: 64, biases: false, vectors: true },
  ],
});

export type EndPriorParams = SolvedForm & {
  readonly implicit: boolean;
  /** True: `row_pointers` is the list `work` of add-prior, as numbers, in place of the row pointers. */
  readonly listed?: boolean;
};

/**
 * Completes rows that were drawn to priors, after they were solved: adds shift ‖a‖² (and with biases the own
 * shift times β₀²) to the objectives in `status`. A row without ratings becomes its prior; its objective is aᵀG a
 * for implicit data, else 0. Outputs that are not used: as for solve-cholesky.
 */
export const endPriorKernel = kernelOf<EndPriorParams>()({
  name: 'end-prior',
  reads: {
    row_pointers: 'array<u32>',
    shifts: 'array<f32>',
    prior: 'array<vec4f>',
    /** β₀, or for implicit data the Gram matrix G, which is stored in full. */
    more: 'array<f32>',
  },
  writes: { ...solvedRows, status: 'array<u32>' },
  uniforms: { count: 'u32', first: 'u32' },
  values: ({ rank, biases, half, implicit, listed = false }) => ({
    biases,
    half,
    implicit,
    listed,
    ...shiftValues(biases),
    RANK: rank,
    STRIDE: paddedRank(rank),
    QUADS: paddedRank(rank) / 4,
    THREADS: 64,
  }),
  bytes: 4 * 64,
  samples: [
    { rank: 40, biases: true, half: true, implicit: false },
    { rank: 64, biases: false, half: false, implicit: true, listed: true },
  ],
});
