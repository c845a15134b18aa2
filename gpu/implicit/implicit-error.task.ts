import type { GpuTaskHandler } from '../handler.ts';
import { kernelOf } from '../webgpu/kernel.ts';

const THREADS = 64;
const STEPS = 64;

/** Ratings that one workgroup sums. */
export const IMPLICIT_ERROR_RATINGS = (THREADS / 4) * STEPS;

export type ImplicitErrorParams = {
  /** Float32 elements of a row of factors, with padding. */
  readonly stride: number;
};

/**
 * Sums the terms of the implicit loss over the ratings [first, last), all ratings of the rows [from_row,
 * to_row). A rating r has the term w (p - s)² + base p (1 - 2 s), where w = alpha |r|, p is 1 if r > 0 and
 * else 0, and s = xᵀθ is the prediction. Each workgroup writes the float32 sum of IMPLICIT_ERROR_RATINGS
 * ratings. There must be at least one rating.
 */
export const implicitErrorKernel = kernelOf<ImplicitErrorParams>()({
  name: 'implicit-error',
  reads: {
    row_pointers: 'array<i32>',
    indices: 'array<u32>',
    values: 'array<f32>',
    row_factors: 'array<vec4f>',
    column_factors: 'array<vec4f>',
  },
  writes: { sums: 'array<f32>' },
  uniforms: { from_row: 'u32', to_row: 'u32', first: 'u32', last: 'u32', alpha: 'f32', base: 'f32' },
  values: ({ stride }) => ({ THREADS, STEPS, QUADS: stride / 4 }),
  bytes: 4 * 2 * THREADS,
  samples: [{ stride: 48 }],
});

/**
 * The task `implicit-error` (see KernelTasks) on a GPU. Each workgroup writes the float32 sum of
 * IMPLICIT_ERROR_RATINGS ratings; the host adds these sums in order in float64.
 */
export const implicitError: GpuTaskHandler<'implicit-error'> = async (scope) => {
  const { from, to, alpha, base } = scope.params;
  const { gpu, submitted } = scope;
  const block = scope.block('block');
  const rowFactors = scope.matrix('rowFactors');
  const [first, last] = [block.offsets[from], block.offsets[to]];
  const groups = scope.cancelled() ? 0 : Math.ceil((last - first) / IMPLICIT_ERROR_RATINGS);
  const bytesDown = 4 * groups;
  if (groups === 0) return { rows: to - from, bytesDown, values: { sum: 0 } };
  const kernel = await gpu.compile(implicitErrorKernel, { stride: rowFactors.stride });
  const sums = await gpu.scratch('implicit-error sums', bytesDown);
  const bindings = {
    row_pointers: block.rowPointers,
    indices: block.indices,
    values: block.values,
    row_factors: rowFactors.values,
    column_factors: scope.matrix('columnFactors').values,
    sums,
  };
  const { bytes } = await gpu
    .pass('implicit-error')
    .dispatch(kernel, bindings, { from_row: from, to_row: to, first, last, alpha, base }, groups)
    .submit({ read: { buffer: sums, bytes: bytesDown }, submitted });
  const sum = new Float32Array(bytes).reduce((total, part) => total + part, 0);
  return { rows: to - from, bytesDown, values: { sum } };
};
