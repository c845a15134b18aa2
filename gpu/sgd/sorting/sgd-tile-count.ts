import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';

/** Largest number of tiles. */
export const MOST_TILES = 4096;

/** Rows of a chunk; one workgroup sorts a chunk's ratings into tiles. */
export const TILE_CHUNK_ROWS = 64;

/** Counts the ratings of each chunk of rows for each tile: `counts` u32[chunks * tiles]. */
export const sgdTileCountKernel = kernelOf<Record<string, never>>()({
  name: 'sgd-tile-count',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      /** Tile of each column in the lower 16 bits, its place in the tile in the upper 16. */
      places: 'array<u32>',
    }),
    ...writes({ counts: 'array<u32>' }),
  ],
  uniforms: {
    rows: 'u32',
    tiles: 'u32',
  },
  needs: () => [],
  values: () => ({ THREADS: 256, CHUNK: TILE_CHUNK_ROWS, MOST_TILES }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_TILES }),
  samples: [{}],
});
