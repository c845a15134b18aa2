import type { UpdateProblem } from '../../operators/tasks/tasks.ts';
import { updateImplicitTensorKernel } from '../kernels/implicit/update-implicit-tensor.ts';
import { admits } from '../kernels/kernel.ts';
import { tilesOf } from '../kernels/normal-equations/slots.ts';
import { updateTensorKernel } from '../kernels/update/update-tensor.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';

/** Float32 A in registers up to this rank, float16 beyond. */
export const FULL_REGISTERS = 144;

/** The same where factors are gathered in 8 bits. */
const INT8_FULL_REGISTERS = 128;

/**
 * True where the kernel that sums and solves multiplies A/n in float16 on tensor cores: where A does not fit registers, and in 8 bits with 7 tiles and no biases. Measured on an H200 with Netflix's shape
 * (docs/measured/performance.md, A on tensor cores).
 */
export function multipliesHalf({ rank, biases }: Pick<UpdateProblem, 'rank' | 'biases'>, precision: 'f16' | 'int8'): boolean {
  return precision === 'f16' ? rank > FULL_REGISTERS : rank > INT8_FULL_REGISTERS || (tilesOf(rank) === 7 && !biases);
}

/** The largest rank where the Gram matrix of implicit data is added. */
const IMPLICIT_REGISTERS = 128;

/** True where the kernel that sums and solves serves: with implicit data for A in float32 registers. */
export function admitsFused(info: GpuInfo, { rank, biases, implicit = false }: Pick<UpdateProblem, 'rank' | 'biases' | 'implicit'>, bin: number, halfA: boolean): boolean {
  if (implicit) return rank <= IMPLICIT_REGISTERS && admits(info, updateImplicitTensorKernel, { rank, bin });
  return admits(info, updateTensorKernel, { rank, bin, biases, implicit, halfA });
}
