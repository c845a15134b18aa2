import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck, variantOf } from '../support/check.ts';
import { checkNotFinite, checkSteps } from '../support/solver-checks.ts';
import { solveCgRegistersKernel, type SolveRegistersParams } from '../../solve/solve-cg-registers.ts';

type Shape = SolveRegistersParams & { readonly steps: number };

const registers = { steps: 6, halfA: false, biases: false, half: false };

const inRegisters: readonly Shape[] = [
  ...[...CHECKED_RANKS.filter((rank) => rank <= 128), 144].map((rank) => ({ ...registers, rank })),
  ...[7, 64, 100, 200, 256].map((rank) => ({ ...registers, rank, halfA: true, half: true })),
  ...[10, 100].map((rank) => ({ ...registers, rank, biases: true, half: true })),
  { ...registers, rank: 24, halfA: true, biases: true, half: true },
  { ...registers, rank: 10, steps: 1 },
];

/**
 * Checks the CG solver that keeps A in registers, with one workgroup per row. Results are compared with the
 * same number of CG steps in float64 from the same start.
 */
export const solveCgRegistersChecks: readonly KernelCheck[] = [
  ...inRegisters.map((params) => ({
    name: solveCgRegistersKernel.name,
    variant: variantOf(params),
    admitted: (gpu: Gpu) => gpu.admits(solveCgRegistersKernel, params),
    run: (gpu: Gpu) => checkSteps(gpu, solveCgRegistersKernel, params, params.halfA),
  })),
  ...[32, 64, 128]
    .map((rank) => ({ ...registers, steps: 12, rank, biases: true, half: true }))
    .map((params) => ({
      name: solveCgRegistersKernel.name,
      variant: `${variantOf(params)}, from the start's level`,
      admitted: (gpu: Gpu) => gpu.admits(solveCgRegistersKernel, params),
      run: (gpu: Gpu) => checkSteps(gpu, solveCgRegistersKernel, params, false, true),
    })),
  {
    name: solveCgRegistersKernel.name,
    variant: 'an A that is not finite',
    admitted: (gpu) => gpu.admits(solveCgRegistersKernel, { ...registers, rank: 20 }),
    run: (gpu) => checkNotFinite(gpu, solveCgRegistersKernel, { ...registers, rank: 20 }),
  },
];
