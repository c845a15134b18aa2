import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

/** Threads of a workgroup, and listed columns that it scores. */
export const LISTED_THREADS = 64;

/** The scores of the listed columns of rows [from_row, to_row), and counts of 0; see the kernel's text. */
export const listedScoresKernel: KernelDescriptor<Record<never, never>> = {
  name: 'listed-scores',
  bindings: [
    ...reads('row_factors', 'column_factors', 'offsets', 'listed'),
    ...writes('thresholds', 'counts'),
  ],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
    { name: 'first', type: 'u32' },
    { name: 'last', type: 'u32' },
    { name: 'quads', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS: LISTED_THREADS }),
  workgroup: () => ({ threads: LISTED_THREADS, bytes: 0 }),
};
