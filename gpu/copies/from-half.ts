import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups that convert `quads` groups of four features. */
export function fromHalfWorkgroups(quads: number): number {
  return Math.ceil(quads / THREADS);
}

/** Converts a half mirror (DeviceMatrix.half) of `quads` groups of four features to a float32 matrix. */
export const fromHalfKernel = kernelOf<Record<string, never>>()({
  name: 'from-half',
  bindings: [...reads({ half: 'array<vec2<u32>>' }), ...writes({ factors: 'array<vec4f>' })],
  uniforms: { quads: 'u32' },
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});
