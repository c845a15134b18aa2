import type { KernelDescriptor } from '../kernel.ts';
import { reads, writes } from '../bindings.ts';

/** Tiles that ratings can be dealt to. */
export const MOST_TILES = 2048;

/** Rows of a chunk that is dealt by one workgroup. */
export const TILE_CHUNK_ROWS = 64;

const dealing = {
  uniforms: [
    { name: 'rows', type: 'u32' },
    { name: 'tiles', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS: 256, CHUNK: TILE_CHUNK_ROWS, MOST_TILES }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_TILES }),
} as const;

/** Counts the ratings of each chunk of rows for each tile: `counts` u32[chunks * tiles]. */
export const sgdTileCountKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-tile-count',
  bindings: [...reads('offsets', 'indices', 'places'), ...writes('counts')],
  ...dealing,
};

/** Deals the ratings to the tiles, where they stay sorted by row. */
export const sgdTileScatterKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-tile-scatter',
  bindings: [...reads('offsets', 'indices', 'values', 'places', 'starts'), ...writes('ratings')],
  ...dealing,
  uniforms: [...dealing.uniforms, { name: 'level', type: 'f32' }],
};
