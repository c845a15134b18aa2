import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { paddedRank, slotElements } from '../device/slots.ts';

export type GramSumParams = { readonly rank: number };

/** Threads that share the sum of one element of G: each adds every eighth slot. */
const LANES = 8;
const THREADS = 256;

/** Number of workgroups to dispatch for the whole matrix. */
export function gramSumWorkgroups({ rank }: GramSumParams): number {
  return Math.ceil((paddedRank(rank) ** 2 * LANES) / THREADS);
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
  needs: () => [],
  values: ({ rank }) => ({
    THREADS,
    LANES,
    ELEMENTS: THREADS / LANES,
    RANK: rank,
    STRIDE: paddedRank(rank),
    SLOT: slotElements(rank, false),
  }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * THREADS }),
  samples: [{ rank: 40 }],
});
