import type { UpdateProblem } from '../../operators/tasks/tasks.ts';
import { updateImplicitTensorKernel } from '../kernels/implicit/update-implicit-tensor.ts';
import { admits } from '../kernels/kernel.ts';
import { updateTensorKernel } from '../kernels/update/update-tensor.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';

/** Float32 A in registers up to this rank, float16 beyond. */
export const FULL_REGISTERS = 144;

/** The same where the Gram matrix of implicit data is added. */
const IMPLICIT_REGISTERS = 128;

/** True where the kernel that sums and solves serves: with implicit data for A in float32 registers. */
export function admitsFused(info: GpuInfo, { rank, biases, implicit = false }: Pick<UpdateProblem, 'rank' | 'biases' | 'implicit'>, bin: number, halfA: boolean): boolean {
  if (implicit) return rank <= IMPLICIT_REGISTERS && admits(info, updateImplicitTensorKernel, { rank, bin });
  return admits(info, updateTensorKernel, { rank, bin, biases, implicit, halfA });
}
