import { type KernelDescriptor, reads, writes } from '../../webgpu/kernel.ts';
import { sgdTileCountKernel } from './sgd-tile-count.ts';

/** Deals the ratings to the tiles, where they stay sorted by row. */
export const sgdTileScatterKernel: KernelDescriptor<Record<string, never>> = {
  ...sgdTileCountKernel,
  name: 'sgd-tile-scatter',
  bindings: [...reads('offsets', 'indices', 'values', 'places', 'starts'), ...writes('ratings')],
  uniforms: [...sgdTileCountKernel.uniforms, { name: 'level', type: 'f32' }],
};
