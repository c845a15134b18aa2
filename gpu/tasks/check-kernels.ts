import type { KernelCheck } from '../kernels/checking/check.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { GpuTaskHandler } from '../handler.ts';

const lists = new WeakMap<Gpu, readonly KernelCheck[]>();

export const checkKernels: GpuTaskHandler<'check-kernels'> = async ({ gpu, params }) => {
  const checks = await checksOf(gpu);
  const { check: number } = params;
  if (number === undefined) return { rows: 0, values: { checks: checks.map(({ name, variant }) => ({ name, variant })) } };
  return { rows: 1, values: await checks[number].run(gpu) };
};

async function checksOf(gpu: Gpu): Promise<readonly KernelCheck[]> {
  const known = lists.get(gpu);
  if (known !== undefined) return known;
  // No other task needs the checks and their twins.
  const { kernelChecks } = await import('../kernels/checks.ts');
  const checks = kernelChecks(gpu);
  lists.set(gpu, checks);
  return checks;
}
