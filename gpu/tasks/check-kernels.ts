import type { None } from '../../operators/tasks/tasks.ts';
import type { KernelCheck } from '../kernels/checking/check.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { GpuTaskHandler } from '../handler.ts';

/**
 * Runs one of the checks that compare kernels with their twins on this adapter, by its number; without a number only lists them.
 *
 * Values: `checks`, a list of {name, variant}, without a number; with one {error, limit}, see KernelCheck.
 */
export interface CheckKernelsTask {
  inputs: None;
  outputs: None;
  params: { readonly check?: number };
  values: { readonly checks?: readonly { readonly name: string; readonly variant: string }[]; readonly error?: number; readonly limit?: number };
}

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
