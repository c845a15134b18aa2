import { STRIDE_STEP } from '../device/resources.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Workgroups that shrink `quads` groups of four features. */
export function shrinkRowsWorkgroups(quads: number): number {
  return Math.ceil(quads / THREADS);
}

/**
 * The task `shrink-rows` on a matrix of `quads` groups of four features, `row_quads` groups a row. `own` is
 * the column of the bias and `one` the column of the constant 1; without biases both are beyond the end of a
 * row.
 */
export const shrinkRowsKernel = kernelOf<{ readonly adaptive: boolean }>()({
  name: 'shrink-rows',
  bindings: [...reads({ sums: 'array<f32>' }), ...writes({ factors: 'array<vec4f>' })],
  uniforms: {
    quads: 'u32',
    row_quads: 'u32',
    rate: 'f32',
    offset: 'f32',
    damping: 'f32',
    own: 'u32',
    one: 'u32',
  },
  needs: () => [],
  // A sum of squared gradients is a matrix of one column.
  values: ({ adaptive }) => ({ THREADS, ADAPTIVE: adaptive, SUM_STRIDE: STRIDE_STEP }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{ adaptive: false }, { adaptive: true }],
});
