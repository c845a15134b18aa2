import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;

/**
 * Corrects the counts of listed columns: subtracts the excluded columns that were counted, for the rows
 * [from_row, to_row), one row a workgroup.
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

    /** Index in `listed` that corresponds to index 0 of thresholds and counts. */
    first: 'u32',
  },
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});
