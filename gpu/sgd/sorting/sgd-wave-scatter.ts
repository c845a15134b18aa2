import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { sgdWaveCountKernel } from './sgd-wave-count.ts';

/** Copies ratings to their blocks, sorted by row and then by column. */
export const sgdWaveScatterKernel = kernelOf<Record<string, never>>()({
  ...sgdWaveCountKernel,
  name: 'sgd-wave-scatter',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      values: 'array<f32>',
      row_starts: 'array<u32>',
      band_of: 'array<u32>',
      /** Starts of the blocks. */
      starts: 'array<u32>',
    }),
    ...writes({
      /** Three words a rating: row, column, value. */
      ratings: 'array<u32>',
    }),
  ],
  samples: [{}],
});
