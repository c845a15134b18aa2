import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { sgdTileCountKernel } from './sgd-tile-count.ts';

/**
 * Second step of sorting ratings into tiles, which are sets of columns: copies each rating to its tile, where
 * ratings stay sorted by row.
 */
export const sgdTileScatterKernel = kernelOf()({
  ...sgdTileCountKernel,
  name: 'sgd-tile-scatter',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      values: 'array<f32>',
      places: 'array<u32>',
      /** For each chunk of rows and tile, the index of its first rating in the output. */
      starts: 'array<u32>',
    }),
    ...writes({ ratings: 'array<vec2<u32>>' }),
  ],
  uniforms: { ...sgdTileCountKernel.uniforms, level: 'f32' },
});
