import type { GpuTaskHandler } from '../handler.ts';
import { STRIDE_STEP } from '../device/resources.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 256;

/** Number of workgroups to dispatch for `quads` groups of four features. */
export function shrinkRowsWorkgroups(quads: number): number {
  return Math.ceil(quads / THREADS);
}

/**
 * Shrinks factors before an epoch, which has the effect of the regularization that does not depend on numbers
 * of ratings (task `shrink-rows`): features are divided by 1 + rate * offset, biases by 1 + rate * damping.
 * The matrix has `quads` groups of four features, `row_quads` of them in a row. `own`: column of the bias;
 * `one`: column of the constant 1, which does not change. Without biases, both are beyond the end of a row.
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
  // AdaGrad's sums of squared gradients are stored as a matrix with one column, whose rows are padded.
  values: ({ adaptive }) => ({ THREADS, ADAPTIVE: adaptive, SUM_STRIDE: STRIDE_STEP }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{ adaptive: false }, { adaptive: true }],
});

/**
 * The task `shrink-rows` (see KernelTasks) on a GPU: applies an epoch's regularization to all rows of factors
 * at once.
 */
export const shrinkRows: GpuTaskHandler<'shrink-rows'> = async (scope) => {
  const { from, to, rate, offset, damping, adaptive } = scope.params;
  const { gpu } = scope;
  const { rows, stride, values: factors } = scope.matrix('factors');
  if (from !== 0 || to !== rows)
    throw new Error(`task shrink-rows: a GPU takes all ${rows} rows at once, got ${from} to ${to}`);
  const { own = stride, one = stride } = scope.params;
  const quads = (rows * stride) / 4;
  const kernel = await gpu.compile(shrinkRowsKernel, { adaptive });
  const sums = adaptive ? scope.matrix('sums').values : await gpu.scratch('no sums', 16);
  const uniforms = { quads, row_quads: stride / 4, rate, offset, damping, own, one };
  await gpu
    .pass('shrink-rows')
    .dispatch(kernel, { sums, factors }, uniforms, shrinkRowsWorkgroups(quads))
    .submit({ submitted: scope.submitted });
  return { rows };
};
