import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';

/** Largest number of bands of columns. */
export const MOST_BANDS = 2048;

/**
 * First step of sorting ratings into blocks (a band of rows by a band of columns): counts the ratings of each
 * block. Output: `counts` u32[row bands * column bands].
 */
export const sgdWaveCountKernel = kernelOf()({
  name: 'sgd-wave-count',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      /** First row of each band of rows; last, the number of rows. */
      row_starts: 'array<u32>',
      /** Band of each column. */
      band_of: 'array<u32>',
    }),
    ...writes({ counts: 'array<u32>' }),
  ],
  uniforms: {
    row_bands: 'u32',
    column_bands: 'u32',
  },
  values: () => ({ THREADS: 256, MOST_BANDS }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_BANDS }),
});
