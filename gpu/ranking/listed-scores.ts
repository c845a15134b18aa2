import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

/** Threads of a workgroup; each scores one listed column. */
export const LISTED_THREADS = 64;

/**
 * Computes the score x.theta of each listed column of the rows [from_row, to_row), as its threshold for
 * count-before, and sets its count and its ties to 0.
 */
export const listedScoresKernel = kernelOf<Record<never, never>>()({
  name: 'listed-scores',
  bindings: [
    ...reads({
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
      offsets: 'array<i32>',
      listed: 'array<u32>',
    }),
    ...writes({
      thresholds: 'array<f32>',
      /** The number of higher scores, and of ties. */
      counts: 'array<vec2u>',
    }),
  ],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',

    /** The range of entries of `listed` that belong to these rows. */
    first: 'u32',
    last: 'u32',

    /** Groups of four elements in a row of factors. */
    quads: 'u32',
  },
  values: () => ({ THREADS: LISTED_THREADS }),
});
