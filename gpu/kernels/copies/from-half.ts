import { type KernelDescriptor, reads, writes } from '../kernel.ts';

const THREADS = 256;

/** Workgroups that widen so many fours of features. */
export function fromHalfWorkgroups(quads: number): number {
  return Math.ceil(quads / THREADS);
}

/** A float32 matrix from its float16 mirror (resources.ts: DeviceMatrix.half): `quads` fours of features. */
export const fromHalfKernel: KernelDescriptor<Record<string, never>> = {
  name: 'from-half',
  bindings: [...reads('half'), ...writes('factors')],
  uniforms: [{ name: 'quads', type: 'u32' }],
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};
