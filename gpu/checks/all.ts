import type { Gpu } from '../gpu.ts';
import type { KernelCheck } from './check.ts';
import { lossChecks } from './loss.ts';
import { normalEquationsChecks } from './normal-equations.ts';
import { solveCgChecks, solveCholeskyChecks } from './solve.ts';
import { toHalfChecks } from './to-half.ts';
import { topNChecks } from './top-n.ts';
import { updateMatrixFreeChecks } from './update-matrix-free.ts';

/** The kernels of ALS's half-iteration that every GPU runs. */
export const updateChecks: readonly KernelCheck[] = [...normalEquationsChecks, ...solveCholeskyChecks, ...solveCgChecks, ...updateMatrixFreeChecks, ...toHalfChecks];

/** Every check of every kernel that the GPU has what it takes for. */
export function kernelChecks(gpu: Gpu): KernelCheck[] {
  return [...updateChecks, ...lossChecks, ...topNChecks].filter((check) => check.admitted?.(gpu) ?? true);
}
