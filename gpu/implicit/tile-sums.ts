import { range } from '../webgpu/kernel.ts';

/** Threads of a workgroup that computes a tile of 64 x 64 sums; see parts/multiply-slabs.wgsl. */
export const TILE_THREADS = 64;

/**
 * The eight rows of a thread's sums: `offset` from its first row, and the component of the quad of the left
 * slab that has the row.
 */
export const tileSums = range(8).map((i) => ({
  name: i,
  half: Math.floor(i / 4),
  component: 'xyzw'[i % 4],
  offset: 32 * Math.floor(i / 4) + (i % 4),
}));
