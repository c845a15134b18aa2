import type { GpuTaskHandler } from '../handler.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelCheck } from './support/check.ts';

interface Listed {
  readonly checks: readonly KernelCheck[];
  /** Names of all kernels with checks. */
  readonly kernels: readonly string[];
}

const lists = new WeakMap<Gpu, Listed>();

export const checkKernels: GpuTaskHandler<'check-kernels'> = async ({ gpu, params }) => {
  // Several WebGPU devices on one card run checks at the same time. While one of them waits for its compiler,
  // keepAwake would give the card dummy work that slows the others.
  gpu.mayIdle = true;
  gpu.journal.detailed = true;
  const { checks, kernels } = await listOf(gpu);
  const { check: number } = params;
  if (number !== undefined) return { rows: 1, values: await checks[number].run(gpu) };
  return { rows: 0, values: { checks: checks.map(({ name, variant }) => ({ name, variant })), kernels } };
};

async function listOf(gpu: Gpu): Promise<Listed> {
  const known = lists.get(gpu);
  if (known !== undefined) return known;
  // Loaded only here, since no other task needs the checks and the kernels' versions on the CPU.
  const { allChecks, kernelChecks } = await import('./checks.ts');
  const listed = {
    checks: kernelChecks(gpu),
    kernels: [...new Set(allChecks(gpu.info).map(({ name }) => name))],
  };
  lists.set(gpu, listed);
  return listed;
}

export const kernelTimes: GpuTaskHandler<'kernel-times'> = async ({ gpu, params }) => {
  gpu.clock.running = params.run;
  return { rows: 0, values: { ...gpu.clock.take() } };
};
