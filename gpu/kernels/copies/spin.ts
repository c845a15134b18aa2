import { type KernelDescriptor, writes } from '../kernel.ts';

/** Keeps every thread of 256 a workgroup busy for `rounds` multiplications. */
export const spinKernel: KernelDescriptor<Record<string, never>> = {
  name: 'spin',
  bindings: [...writes('result')],
  uniforms: [{ name: 'rounds', type: 'u32' }],
  needs: () => [],
  values: () => ({ THREADS: 256 }),
  workgroup: () => ({ threads: 256, bytes: 0 }),
};
