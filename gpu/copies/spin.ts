import { kernelOf, writes } from '../webgpu/kernel.ts';

/** Keeps the 256 threads of each workgroup busy for `rounds` multiplications. */
export const spinKernel = kernelOf<Record<string, never>>()({
  name: 'spin',
  bindings: [...writes({ result: 'array<u32>' })],
  uniforms: { rounds: 'u32' },
  needs: () => [],
  values: () => ({ THREADS: 256 }),
  workgroup: () => ({ threads: 256, bytes: 0 }),
  samples: [{}],
});
