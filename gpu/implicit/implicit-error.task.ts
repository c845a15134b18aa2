import type { GpuTaskHandler, GpuTaskScope } from '../handler.ts';
import { type KernelDescriptor, kernelOf, type KernelParams } from '../webgpu/kernel.ts';

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
  const block = scope.block('block');
  const rowFactors = scope.matrix('rowFactors');
  const [first, last] = [block.offsets[from], block.offsets[to]];
  const groups = scope.cancelled() ? 0 : Math.ceil((last - first) / IMPLICIT_ERROR_RATINGS);
  const bindings = {
    row_pointers: block.rowPointers,
    indices: block.indices,
    values: block.values,
    row_factors: rowFactors.values,
    column_factors: scope.matrix('columnFactors').values,
  };
  const sum = await groupSums(
    scope,
    implicitErrorKernel,
    { stride: rowFactors.stride },
    bindings,
    { from_row: from, to_row: to, first, last, alpha, base },
    groups,
  );
  return { rows: to - from, bytesDown: 4 * groups, values: { sum } };
};

/**
 * Runs a kernel whose workgroups each write one float32 sum to `sums`. Returns the total, added in order in
 * float64.
 */
async function groupSums<Params extends KernelParams>(
  scope: Pick<GpuTaskScope, 'gpu' | 'submitted'>,
  kernel: KernelDescriptor<Params>,
  params: NoInfer<Params>,
  bindings: Readonly<Record<string, GPUBuffer>>,
  uniforms: Readonly<Record<string, number>>,
  groups: number,
): Promise<number> {
  if (groups === 0) return 0;
  const { gpu } = scope;
  const compiled = await gpu.compile(kernel, params);
  const sums = await gpu.scratch(`${kernel.name} sums`, 4 * groups);
  const { bytes } = await gpu
    .pass(kernel.name)
    .dispatch(compiled, { ...bindings, sums }, uniforms, groups)
    .submit({ read: { buffer: sums, bytes: 4 * groups }, submitted: scope.submitted });
  return new Float32Array(bytes).reduce((sum, part) => sum + part, 0);
}
