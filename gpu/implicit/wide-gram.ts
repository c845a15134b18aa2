import { slotElements, tilesOf } from '../device/slots.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { TILE_THREADS, tileSums } from './tile-sums.ts';

export type WideGramParams = { readonly rank: number };

/** Rows of θ in workgroup memory at a time. */
const SLAB = 16;

/** Tiles of 64 x 64 elements that contain the lower triangle. */
function blocksOf(rank: number): number {
  const side = Math.ceil(tilesOf(rank) / 4);
  return (side * (side + 1)) / 2;
}

export function wideGramWorkgroups({ rank }: WideGramParams, parts: number): number {
  return parts * blocksOf(rank);
}

/**
 * Sums θ_v θ_vᵀ over ranges of rows of Θ into slots, for the Gram matrix at ranks at which normal-equations
 * does not run. An entry of `work`: 0, first row, number of rows, slot.
 */
export const wideGramKernel = kernelOf<WideGramParams>()({
  name: 'wide-gram',
  bindings: [...reads({ work: 'array<vec4u>', fixed: 'array<vec4f>' }), ...writes({ slots: 'array<vec4f>' })],
  uniforms: { count: 'u32' },
  values: ({ rank }) => ({
    THREADS: TILE_THREADS,
    SLAB,
    TILES: tilesOf(rank),
    QUADS: 4 * tilesOf(rank),
    BLOCKS: blocksOf(rank),
    SLOT_QUADS: slotElements(rank, false) / 4,
    sums: tileSums,
  }),
  workgroup: () => ({ threads: TILE_THREADS, bytes: 2 * SLAB * 256 }),
  samples: [{ rank: 528 }],
});
