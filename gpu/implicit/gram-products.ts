import { paddedRank } from '../device/slots.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { TILE_THREADS, tileSums } from './tile-sums.ts';

export type GramProductsParams = { readonly rank: number };

/** Rows of the Gram matrix in workgroup memory at a time. */
const SLAB = 16;

function columnTiles(rank: number): number {
  return Math.ceil(paddedRank(rank) / 64);
}

/** Workgroups that multiply the vectors of `rows` rows. */
export function gramProductsWorkgroups({ rank }: GramProductsParams, rows: number): number {
  return Math.ceil(rows / 64) * columnTiles(rank);
}

/**
 * Multiplies the vectors of `count` rows by the Gram matrix, for CG without A of implicit data at ranks above
 * 128. The product of row `first` is the first one of `products`.
 */
export const gramProductsKernel = kernelOf<GramProductsParams>()({
  name: 'gram-products',
  bindings: [
    ...reads({ vectors: 'array<vec4f>', gram: 'array<vec4f>' }),
    ...writes({ products: 'array<vec4f>' }),
  ],
  uniforms: { count: 'u32', first: 'u32' },
  values: ({ rank }) => ({
    THREADS: TILE_THREADS,
    SLAB,
    QUADS: paddedRank(rank) / 4,
    COLUMN_TILES: columnTiles(rank),
    sums: tileSums,
    components: ['x', 'y', 'z', 'w'],
  }),
  workgroup: () => ({ threads: TILE_THREADS, bytes: 2 * SLAB * 256 }),
  samples: [{ rank: 144 }, { rank: 528 }],
});
