import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { sgdWaveCountKernel } from './sgd-wave-count.ts';

/**
 * Second step of sorting ratings into blocks (a band of rows by a band of columns): copies each rating to its
 * block. Within a block, ratings are sorted by row and then by column.
 */
export const sgdWaveScatterKernel = kernelOf()({
  ...sgdWaveCountKernel,
  name: 'sgd-wave-scatter',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      values: 'array<f32>',
      row_starts: 'array<u32>',
      band_of: 'array<u32>',
      /** Index of each block's first rating in the output. */
      starts: 'array<u32>',
    }),
    ...writes({
      /** Three words for each rating: row, column, and value as float32 bits. */
      ratings: 'array<u32>',
    }),
  ],
});
