import type { Gpu } from '../gpu.ts';
import type { KernelCheck } from './check.ts';
import { halfIterationChecks } from './half-iteration.ts';
import { lossChecks } from './loss.ts';
import { normalEquationsChecks } from './normal-equations.ts';
import { sgdListChecks } from './sgd-list.ts';
import { sgdTilesChecks } from './sgd-tiles.ts';
import { sgdWavesChecks } from './sgd-waves.ts';
import { solveCgChecks, solveCgRegistersChecks, solveCholeskyChecks } from './solve.ts';
import { tensorChecks } from './tensor.ts';
import { toHalfChecks } from './to-half.ts';
import { topNChecks } from './top-n.ts';
import { updateMatrixFreeChecks } from './update-matrix-free.ts';

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
