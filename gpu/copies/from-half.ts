import { kernelOf } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups that convert `quads` groups of four features. */
export function fromHalfWorkgroups(quads: number): number {
  return Math.ceil(quads / THREADS);
}

/**
 * Converts a half mirror (the float16 copy of a matrix, DeviceMatrix.half) to a float32 matrix. `quads`: its
 * size in groups of four features.
 */
export const fromHalfKernel = kernelOf()({
  name: 'from-half',
  reads: { half: 'array<vec2<u32>>' },
  writes: { factors: 'array<vec4f>' },
  uniforms: { quads: 'u32' },
  values: () => ({ THREADS }),
});
