import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';

/** Largest number of tiles. */
export const MOST_TILES = 4096;

/**
 * To sort ratings into tiles (sets of columns), each workgroup takes a chunk of this number of adjacent rows.
 */
export const TILE_CHUNK_ROWS = 64;

/**
 * First step of sorting ratings into tiles, which are sets of columns: counts the ratings of each chunk of
 * rows in each tile. Output: `counts` u32[chunks * tiles].
 */
export const sgdTileCountKernel = kernelOf()({
  name: 'sgd-tile-count',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      /**
       * For each column its tile, in the lower 16 bits, and its index within the tile, in the upper 16 bits.
       */
      places: 'array<u32>',
    }),
    ...writes({ counts: 'array<u32>' }),
  ],
  uniforms: {
    rows: 'u32',
    tiles: 'u32',
  },
  values: () => ({ THREADS: 256, CHUNK: TILE_CHUNK_ROWS, MOST_TILES }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_TILES }),
});
