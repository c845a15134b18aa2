import { kernelOf, range, reads, writes } from '../../webgpu/kernel.ts';
import { paddedRank } from '../../device/slots.ts';
import { gradientQuads } from './gradients.ts';

export type PartProductsParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** With the weights of implicit data. */
  readonly implicit: boolean;
  /** The residual for x instead of products with the direction. */
  readonly first: boolean;
};

const THREADS = 64;
const TILE_BYTES = 12_288;

/** Ratings whose θ lie in workgroup memory at a time: a power of two. */
function tileOf(rank: number): number {
  const row = 4 * paddedRank(rank) + 16;
  return [16, 8, 4, 2].find((tile) => tile * row <= TILE_BYTES) ?? 1;
}

/**
 * Products of parts of rows with their ratings, Σ (θᵀv) θ for a vector v of the row, into slots
 * (gradients.ts). `work` lists row, first rating, ratings, slot.
 *
 */
export const partProductsKernel = kernelOf<PartProductsParams>()({
  name: 'part-products',
  bindings: [
    ...reads({
      work: 'array<vec4u>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<vec4f>',
      vectors: 'array<vec4f>',
    }),
    ...writes({ slots: 'array<vec4f>' }),
  ],
  uniforms: {
    count: 'u32',
    alpha: 'f32',
    base: 'f32',
  },
  needs: () => [],
  values({ rank, biases, implicit, first }) {
    const tile = tileOf(rank);
    const { quads, slot } = gradientQuads(rank, biases);
    return {
      THREADS,
      TILE: tile,
      LANES: THREADS / tile,
      QUADS: quads,
      TILE_QUADS: quads + 1,
      SLOT_QUADS: slot,
      FIRST: first,
      implicit,
      sums_rows: first && biases,
      owned: range(Math.ceil(quads / THREADS)),
    };
  },
  workgroup: ({ rank }) => ({
    threads: THREADS,
    bytes: tileOf(rank) * (4 * paddedRank(rank) + 16) + 4 * paddedRank(rank) + 4 * THREADS + 4 * tileOf(rank),
  }),
  samples: [
    { rank: 100, biases: true, implicit: false, first: true },
    { rank: 40, biases: false, implicit: true, first: true },
    { rank: 512, biases: false, implicit: true, first: false },
  ],
});
