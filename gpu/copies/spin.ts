import { kernelOf, writes } from '../webgpu/kernel.ts';

/**
 * Dummy work that keeps the GPU's clock high (gpu/webgpu/idle-spin.ts): each thread does `rounds`
 * multiplications.
 */
export const spinKernel = kernelOf()({
  name: 'spin',
  bindings: [...writes({ result: 'array<u32>' })],
  uniforms: { rounds: 'u32' },
  values: () => ({ THREADS: 256 }),
});
