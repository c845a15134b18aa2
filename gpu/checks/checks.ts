import type { Gpu } from '../webgpu/gpu.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';
import { copiesChecks } from '../copies/copies.check.ts';
import type { KernelCheck } from './support/check.ts';
import { LONGEST } from './support/rated-problem.ts';
import { normalEquationsChecks } from './normal-equations.check.ts';
import { rowShiftsChecks, solveCgRegistersChecks, solveChecks } from './solve.check.ts';
import { halfIterationChecks, implicitChecks } from './half-iteration.check.ts';
import { sgdChecks } from './sgd.check.ts';
import { tensorChecks, toInt8Checks } from './tensor.check.ts';
import { taskChecks } from './task-checks.ts';
import { vectorChecks } from './vectors.check.ts';
import { wideChecks } from './wide.check.ts';

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
export const subgroupChecks: readonly KernelCheck[] = [...tensorChecks, ...solveCgRegistersChecks];

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
