import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck, variantOf } from '../support/check.ts';
import { checkNotFinite, checkSteps } from '../support/solver-checks.ts';
import { solveCgKernel, type SolveCgParams } from '../../solve/solve-cg.ts';

type Shape = SolveCgParams & { readonly steps: number };

const common = { steps: 6, a: 'f32', biases: false, half: false } as const;

const level: Shape = { ...common, rank: 32, steps: 12, biases: true, half: true };

const approximate: readonly Shape[] = [
  ...[...CHECKED_RANKS, 512].map((rank) => ({ ...common, rank })),
  ...[7, 64, 100, 200].map((rank) => ({ ...common, rank, a: 'f16' as const })),
  ...[10, 100, 140].map((rank) => ({ ...common, rank, biases: true, half: true })),
  { ...common, rank: 24, a: 'f16', biases: true, half: true },
  { ...common, rank: 10, steps: 1 },
  { ...common, rank: 10, steps: 40 },
];

/** Checks the CG solver against the same number of CG steps in float64 from the same start. */
export const solveCgChecks: readonly KernelCheck[] = [
  ...approximate.map((params) => ({
    name: solveCgKernel.name,
    variant: variantOf(params),
    run: (gpu: Gpu) => checkSteps(gpu, solveCgKernel, params, params.a === 'f16'),
  })),
  {
    name: solveCgKernel.name,
    variant: `${variantOf(level)}, from the start's level`,
    run: (gpu: Gpu) => checkSteps(gpu, solveCgKernel, level, false, true),
  },
  {
    name: solveCgKernel.name,
    variant: 'an A that is not finite',
    run: (gpu: Gpu) => checkNotFinite(gpu, solveCgKernel, { ...common, rank: 20 }),
  },
];
