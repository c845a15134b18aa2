import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { sgdTileCountKernel } from './sgd-tile-count.ts';

/** Deals ratings to tiles, keeping them sorted by row. */
export const sgdTileScatterKernel = kernelOf<Record<string, never>>()({
  ...sgdTileCountKernel,
  name: 'sgd-tile-scatter',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      values: 'array<f32>',
      places: 'array<u32>',
      /** Starts of the ratings by chunk and tile. */
      starts: 'array<u32>',
    }),
    ...writes({ ratings: 'array<vec2<u32>>' }),
  ],
  uniforms: { ...sgdTileCountKernel.uniforms, level: 'f32' },
  samples: [{}],
});
