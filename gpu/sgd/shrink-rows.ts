import { STRIDE_STEP } from '../device/resources.ts';
import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups that shrink `quads` groups of four features. */
export function shrinkRowsWorkgroups(quads: number): number {
  return Math.ceil(quads / THREADS);
}

/**
 * The task `shrink-rows` on a matrix of `quads` groups of four features, `row_quads` a row. A column beyond
 * the row for `own` and `one`: there is none.
 */
export const shrinkRowsKernel: KernelDescriptor<{ readonly adaptive: boolean }> = {
  name: 'shrink-rows',
  bindings: [...reads('sums'), ...writes('factors')],
  uniforms: [
    { name: 'quads', type: 'u32' },
    { name: 'row_quads', type: 'u32' },
    { name: 'rate', type: 'f32' },
    { name: 'offset', type: 'f32' },
    { name: 'damping', type: 'f32' },
    { name: 'own', type: 'u32' },
    { name: 'one', type: 'u32' },
  ],
  needs: () => [],
  // A sum of squared gradients is a matrix of one column.
  values: ({ adaptive }) => ({ THREADS, ADAPTIVE: adaptive, SUM_STRIDE: STRIDE_STEP }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};
