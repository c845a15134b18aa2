import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { MOST_FORMED, paddedRank, slotElements } from '../device/slots.ts';

export type GramSumParams = { readonly rank: number };

const THREADS = 256;

/**
 * Threads that share the sum of one element of G: each adds every eighth slot. Large matrices have enough
 * elements for all threads, and few slots.
 */
function lanesOf({ rank }: GramSumParams): number {
  return rank > MOST_FORMED ? 1 : 8;
}

/** Number of workgroups to dispatch for the whole matrix. */
export function gramSumWorkgroups(params: GramSumParams): number {
  return Math.ceil((paddedRank(params.rank) ** 2 * lanesOf(params)) / THREADS);
}

/**
 * Computes the Gram matrix G = weight ΘᵀΘ, F x F (F: rank padded to whole tiles), with zeros beyond the rank.
 * Input: `slot_count` slots (device/slots.ts), each with ΘᵀΘ of some of the rows of Θ. They are added in a
 * fixed order.
 */
export const gramSumKernel = kernelOf<GramSumParams>()({
  name: 'gram-sum',
  bindings: [...reads({ slots: 'array<f32>' }), ...writes({ gram: 'array<f32>' })],
  uniforms: {
    slot_count: 'u32',
    weight: 'f32',
  },
  values: ({ rank }) => ({
    THREADS,
    LANES: lanesOf({ rank }),
    ELEMENTS: THREADS / lanesOf({ rank }),
    RANK: rank,
    STRIDE: paddedRank(rank),
    SLOT: slotElements(rank, false),
  }),
  workgroup: (params) => ({ threads: THREADS, bytes: lanesOf(params) > 1 ? 4 * THREADS : 0 }),
  samples: [{ rank: 40 }, { rank: 528 }],
});
