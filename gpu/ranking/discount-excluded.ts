import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;

/**
 * Subtracts the excluded columns of the rows [from_row, to_row) from the counts of their listed columns, one
 * row a workgroup.
 */
export const discountExcludedKernel = kernelOf<Record<never, never>>()({
  name: 'discount-excluded',
  bindings: [
    ...reads({
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
      offsets: 'array<i32>',
      listed: 'array<u32>',
      exclude_offsets: 'array<i32>',
      excluded: 'array<u32>',
      thresholds: 'array<vec2f>',
    }),
    ...writes({ counts: 'array<atomic<u32>>' }),
  ],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    quads: 'u32',

    /** The entry of `listed` that index 0 of thresholds and counts belongs to. */
    first: 'u32',
  },
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});
