import { type KernelDescriptor, reads, writes } from '../../webgpu/kernel.ts';

/** Largest number of bands of columns. */
export const MOST_BANDS = 2048;

/** Counts the ratings of each block: `counts` u32[row bands * column bands]. */
export const sgdWaveCountKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-wave-count',
  bindings: [...reads('offsets', 'indices', 'row_starts', 'band_of'), ...writes('counts')],
  uniforms: [
    { name: 'row_bands', type: 'u32' },
    { name: 'column_bands', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS: 256, MOST_BANDS }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_BANDS }),
};
