import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { paddedRank, slotElements } from '../device/slots.ts';

export type GramSumParams = { readonly rank: number };

/** Threads that share the sum of one element: each adds every eighth slot. */
const LANES = 8;
const THREADS = 256;

/** Workgroups that write the matrix. */
export function gramSumWorkgroups({ rank }: GramSumParams): number {
  return Math.ceil((paddedRank(rank) ** 2 * LANES) / THREADS);
}

/**
 * Computes G = weight ΘᵀΘ, F x F with zeros beyond the rank. Input: `slot_count` slots (slots.ts), each with
 * the product ΘᵀΘ of a part of the rows. The slots are added in a fixed order.
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
