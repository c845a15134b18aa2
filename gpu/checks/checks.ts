import type { Gpu } from '../webgpu/gpu.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';
import { copiesChecks } from '../copies/copies.check.ts';
import type { KernelCheck } from './support/check.ts';
import { LONGEST } from './support/rated-problem.ts';
import { int8Checks, toInt8Checks } from './int8/int8.check.ts';
import { normalEquationsTensorChecks } from './equations/normal-equations-tensor.check.ts';
import { normalEquationsChecks } from './equations/normal-equations.check.ts';
import { sgdTileScatterChecks } from './sgd/sgd-tile-scatter.check.ts';
import { sgdListChecks } from './sgd/sgd-list.check.ts';
import { sgdTilesChecks } from './sgd/sgd-tiles.check.ts';
import { sgdWavesChecks } from './sgd/sgd-waves.check.ts';
import { rowShiftsChecks } from './solve/row-shifts.check.ts';
import { solveCgRegistersChecks, solveChecks } from './solve/solve.check.ts';
import { halfIterationChecks, implicitChecks } from './update/half-iteration.check.ts';
import { updateShortChecks } from './update/update-short.check.ts';
import { updateTensorChecks } from './update/update-tensor.check.ts';
import { taskChecks } from './task-checks.ts';
import { vectorChecks } from './vectors/vectors.check.ts';
import { wideChecks } from './vectors/wide.check.ts';

/** Kernels of ALS's half-iteration that every GPU runs. */
export const updateChecks: readonly KernelCheck[] = [
  ...normalEquationsChecks,
  ...rowShiftsChecks,
  ...solveChecks,
  ...vectorChecks,
  ...wideChecks,
  ...toInt8Checks,
  ...copiesChecks,
];

/** Kernels for GPUs with subgroups of 32 threads, or with tensor cores. */
export const subgroupChecks: readonly KernelCheck[] = [
  ...normalEquationsTensorChecks,
  ...updateTensorChecks,
  ...updateShortChecks,
  ...solveCgRegistersChecks,
  ...int8Checks,
];

/** Kernels of SGD. */
export const sgdChecks: readonly KernelCheck[] = [
  ...sgdTilesChecks,
  ...sgdTileScatterChecks,
  ...sgdListChecks,
  ...sgdWavesChecks,
];

/**
 * All checks, including kernels that the adapter does not support. Half-iterations are only checked in the
 * variants that it supports.
 */
export function allChecks(info: GpuInfo): KernelCheck[] {
  const longest = info.software ? 1000 : LONGEST;
  const halfIterations = [...halfIterationChecks(info, longest), ...implicitChecks(info, longest)];
  return [...updateChecks, ...subgroupChecks, ...taskChecks(), ...sgdChecks, ...halfIterations];
}

/** All checks of kernels that this GPU has the features and limits for. */
export function kernelChecks(gpu: Gpu): KernelCheck[] {
  return allChecks(gpu.info).filter((check) => check.admitted?.(gpu) ?? true);
}
