import type { KernelDescriptor } from '../kernel.ts';

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
  bindings: [
    { name: 'offsets', access: 'read' },
    { name: 'indices', access: 'read' },
    { name: 'places', access: 'read' },
    { name: 'counts', access: 'read_write' },
  ],
  ...dealing,
};

/** Deals the ratings to the tiles, where they stay sorted by row. */
export const sgdTileScatterKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-tile-scatter',
  bindings: [
    { name: 'offsets', access: 'read' },
    { name: 'indices', access: 'read' },
    { name: 'values', access: 'read' },
    { name: 'places', access: 'read' },
    { name: 'starts', access: 'read' },
    { name: 'ratings', access: 'read_write' },
  ],
  ...dealing,
  uniforms: [...dealing.uniforms, { name: 'level', type: 'f32' }],
};
