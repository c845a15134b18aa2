import type { Task } from '../../engine/task.ts';
import type { KernelCheck } from '../kernels/checking/check.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { GpuTaskHandler } from '../handler.ts';

/**
 * Runs one of the checks that compare kernels with their twins on this adapter, by its number; without a number only lists them.
 *
 * Values: `checks`, a list of {name, variant}, without a number; with one {error, limit}, see KernelCheck.
 */
export type CheckKernelsTask = Task<'check-kernels', { readonly check?: number }>;

const lists = new WeakMap<Gpu, readonly KernelCheck[]>();

export const checkKernels: GpuTaskHandler = async ({ gpu, params }) => {
  const checks = await checksOf(gpu);
  const { check: number } = params as CheckKernelsTask['params'];
  if (number === undefined) return { rows: 0, values: { checks: checks.map(({ name, variant }) => ({ name, variant })) } };
  return { rows: 1, values: await checks[number].run(gpu) };
};

async function checksOf(gpu: Gpu): Promise<readonly KernelCheck[]> {
  const known = lists.get(gpu);
  if (known !== undefined) return known;
  // Nobody else needs the checks and their twins.
  const { kernelChecks } = await import('../kernels/checks.ts');
  const checks = kernelChecks(gpu);
  lists.set(gpu, checks);
  return checks;
}
