import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelCheck } from './checking/check.ts';
import { halfIterationChecks } from './update/half-iteration.check.ts';
import { lossChecks } from './loss/squared-error.check.ts';
import { normalEquationsChecks } from './normal-equations/normal-equations.check.ts';
import { sgdListChecks } from './sgd/sgd-list.check.ts';
import { sgdTilesChecks } from './sgd/sgd-tiles.check.ts';
import { sgdWavesChecks } from './sgd/sgd-waves.check.ts';
import { solveCgChecks, solveCgRegistersChecks, solveCholeskyChecks } from './solve/solve-cg.check.ts';
import { tensorChecks } from './normal-equations/normal-equations-tensor.check.ts';
import { toHalfChecks } from './copies/to-half.check.ts';
import { topNChecks } from './serving/top-n.check.ts';
import { updateMatrixFreeChecks } from './update/update-matrix-free.check.ts';

/** The kernels of ALS's half-iteration that every GPU runs. */
export const updateChecks: readonly KernelCheck[] = [...normalEquationsChecks, ...solveCholeskyChecks, ...solveCgChecks, ...updateMatrixFreeChecks, ...toHalfChecks];

/** Those for GPUs with subgroups of 32 threads, or with tensor cores. */
export const subgroupChecks: readonly KernelCheck[] = [...tensorChecks, ...solveCgRegistersChecks];

/** The kernels of SGD. */
export const sgdChecks: readonly KernelCheck[] = [...sgdTilesChecks, ...sgdListChecks, ...sgdWavesChecks];

/** Every check of every kernel that the GPU has what it takes for. */
export function kernelChecks(gpu: Gpu): KernelCheck[] {
  return [...updateChecks, ...subgroupChecks, ...lossChecks, ...topNChecks, ...sgdChecks, ...halfIterationChecks(gpu.info, gpu.info.software ? 1000 : 10_000)].filter((check) => check.admitted?.(gpu) ?? true);
}
