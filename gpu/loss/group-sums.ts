import type { GpuTaskScope } from '../handler.ts';
import type { KernelDescriptor, KernelParams } from '../webgpu/kernel.ts';

/**
 * Runs a kernel whose workgroups each write one float32 sum to `sums`. Returns the total, added in order in
 * float64.
 */
export async function groupSums<Params extends KernelParams>(
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
