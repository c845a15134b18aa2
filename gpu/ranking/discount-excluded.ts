import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;

/**
 * Corrects the counts and ties of count-before for columns that a row excludes, such as a user's known items:
 * subtracts the excluded columns with a higher or the same score. For the rows [from_row, to_row), one
 * row per workgroup.
 */
export const discountExcludedKernel = kernelOf<Record<never, never>>()({
  name: 'discount-excluded',
  bindings: [
    ...reads({
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
      offsets: 'array<i32>',
      exclude_offsets: 'array<i32>',
      excluded: 'array<u32>',
      thresholds: 'array<f32>',
    }),
    ...writes({ counts: 'array<atomic<u32>>' }),
  ],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    quads: 'u32',

    /** The first listed entry, which has its threshold at index 0, its count and ties at 0 and 1. */
    first: 'u32',
  },
  values: () => ({ THREADS }),
});
