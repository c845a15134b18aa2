import { type KernelDescriptor, reads, writes } from '../../webgpu/kernel.ts';
import { sgdWaveCountKernel } from './sgd-wave-count.ts';

/** Writes the ratings to their blocks, by row and then by column. */
export const sgdWaveScatterKernel: KernelDescriptor<Record<string, never>> = {
  ...sgdWaveCountKernel,
  name: 'sgd-wave-scatter',
  bindings: [
    ...reads('offsets', 'indices', 'values', 'row_starts', 'band_of', 'starts'),
    ...writes('ratings'),
  ],
};
