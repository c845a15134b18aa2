import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;

/**
 * Takes the excluded columns of the rows [from_row, to_row), one a workgroup, out of the counts of their
 * listed columns.
 */
export const discountExcludedKernel: KernelDescriptor<Record<never, never>> = {
  name: 'discount-excluded',
  bindings: [
    ...reads(
      'row_factors',
      'column_factors',
      'offsets',
      'listed',
      'exclude_offsets',
      'excluded',
      'thresholds',
    ),
    ...writes('counts'),
  ],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
    { name: 'quads', type: 'u32' },
    { name: 'first', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};
