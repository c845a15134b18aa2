/**
 * Compiles the two kernels that share normal equations through slots in device memory (device/slots.ts): one
 * computes A and b from ratings and writes them to slots, the other solves rows from slots.
 */
import { normalEquationsInt8Kernel } from '../int8/int8-plan.ts';
import { exactSolvers } from '../solve/exact-solvers.ts';
import {
  solveCgKernel,
  type SolveCgParams,
  solveCgWorkgroups,
  solveCgRegistersKernel,
} from '../solve/solve-cg.ts';
import type { UpdateSettings } from '../update/choice/variant.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { SizedKernel } from '../webgpu/kernel.ts';
import { normalEquationsTensorKernel } from './normal-equations-tensor.ts';
import { normalEquationsKernel, normalEquationsWorkgroups } from './normal-equations.ts';

export async function compileSum(
  gpu: Gpu,
  {
    variant,
    rank,
    implicit: weights,
  }: Pick<UpdateSettings, 'variant' | 'rank'> & { readonly implicit?: unknown },
  biases: boolean,
): Promise<SizedKernel> {
  const implicit = weights !== undefined;
  if (variant.sum.kernel === 'tensor') {
    const compiled = await gpu.compile(normalEquationsTensorKernel, {
      rank,
      bin: variant.sum.bin,
      biases,
      implicit,
    });
    return { compiled, workgroups: (parts) => parts };
  }
  if (variant.sum.kernel === 'int8')
    return {
      compiled: await gpu.compile(normalEquationsInt8Kernel, { rank, biases }),
      workgroups: (parts) => parts,
    };
  if (variant.sum.kernel === 'vectors' || variant.precision === 'int8')
    throw new Error(`variant ${variant.name} does not sum to slots`);
  const { kernel: _kernel, ...tiles } = variant.sum;
  const params = { rank, precision: variant.precision, biases, implicit, ...tiles };
  return {
    compiled: await gpu.compile(normalEquationsKernel, params),
    workgroups: (parts) => normalEquationsWorkgroups(params, parts),
  };
}

export async function compileSolve(
  gpu: Gpu,
  { variant, rank, solver }: Pick<UpdateSettings, 'variant' | 'rank' | 'solver'>,
  biases: boolean,
): Promise<SizedKernel> {
  const half = variant.precision !== 'f32';
  if (typeof solver === 'string') return exactSolvers[solver].compile(gpu, { rank, biases, half });
  if (variant.registers)
    return {
      compiled: await gpu.compile(solveCgRegistersKernel, { rank, halfA: variant.halfA, biases, half }),
      workgroups: (rows) => rows,
    };
  const params: SolveCgParams = { rank, a: variant.halfA ? 'f16' : 'f32', biases, half };
  return {
    compiled: await gpu.compile(solveCgKernel, params),
    workgroups: (rows) => solveCgWorkgroups(params, rows),
  };
}
