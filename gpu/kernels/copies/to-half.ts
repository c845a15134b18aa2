import type { KernelDescriptor } from '../kernel.ts';
import { reads, writes } from '../bindings.ts';

const THREADS = 256;

/** Workgroups that round `rows` rows of `quads` fours of features. */
export function toHalfWorkgroups(rows: number, quads: number): number {
  return Math.ceil(((rows + 1) * quads) / THREADS);
}

/** The float16 mirror (resources.ts: DeviceMatrix.half) of `rows` rows of 4 `quads` features: rows + 1 rows, the last one 0. */
export const toHalfKernel: KernelDescriptor<Record<string, never>> = {
  name: 'to-half',
  bindings: [...reads('factors'), ...writes('half')],
  uniforms: [
    { name: 'rows', type: 'u32' },
    { name: 'quads', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};
