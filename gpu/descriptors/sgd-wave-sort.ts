import type { KernelDescriptor } from '../kernel.ts';

/** Bands of columns that ratings can be sorted by. */
export const MOST_BANDS = 2048;

const sorting = {
  uniforms: [
    { name: 'row_bands', type: 'u32' },
    { name: 'column_bands', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS: 256, MOST_BANDS }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_BANDS }),
} as const;

/** Counts the ratings of each block: `counts` u32[row bands * column bands]. */
export const sgdWaveCountKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-wave-count',
  bindings: [
    { name: 'offsets', access: 'read' },
    { name: 'indices', access: 'read' },
    { name: 'row_starts', access: 'read' },
    { name: 'band_of', access: 'read' },
    { name: 'counts', access: 'read_write' },
  ],
  ...sorting,
};

/** Writes the ratings to their blocks, by row and then by column. */
export const sgdWaveScatterKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-wave-scatter',
  bindings: [
    { name: 'offsets', access: 'read' },
    { name: 'indices', access: 'read' },
    { name: 'values', access: 'read' },
    { name: 'row_starts', access: 'read' },
    { name: 'band_of', access: 'read' },
    { name: 'starts', access: 'read' },
    { name: 'ratings', access: 'read_write' },
  ],
  ...sorting,
};
