import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { updateImplicitTensorKernel } from '../../implicit/update-implicit-tensor.ts';
import { admits } from '../../webgpu/kernel.ts';
import { tilesOf } from '../../device/slots.ts';
import { hasRatingRow } from '../../equations/tensor-plan.ts';
import { INT8_EVEN_LANES } from '../../int8/int8-plan.ts';
import { updateInt8Kernel } from '../../int8/update-int8.ts';
import { updateTensorKernel } from '../update-tensor.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import type { UpdateVariant } from './variant.ts';
import { LEAST_BIN } from './tensor-bins.ts';

/**
 * Largest rank at which A fits the registers of a workgroup in float32, for kernels that read θ in float16.
 * Above this rank, A is kept in float16.
 */
export const FULL_REGISTERS = 144;

/** The same limit for kernels that read θ in 8 bits. */
const INT8_FULL_REGISTERS = 128;

/**
 * The form in which the fused kernel, which both computes A and solves, keeps A while it solves. `halfA`
 * true: A / n in float16, multiplied on tensor cores; `room` is the number of 16 x 16 tiles that are in
 * workgroup memory at the same time while A is moved there. `halfA` false: A in float32 in registers.
 */
export interface SolvingForm {
  readonly halfA: boolean;
  readonly room?: number;
}

/**
 * Chooses how the fused kernel keeps A. `halfA` is true if A does not fit the registers, and also in these
 * cases, where it was measured to be faster (tiles: the rank divided by 16, rounded up):
 *
 * | precision of θ | biases | tiles |
 * |---|---|---|
 * | 8 bits | with or without | 7 |
 * | 8 bits | without | 8 |
 * | float16 | without | 9 |
 * | float16 | with, if the padding of A has room for the ratings (`hasRatingRow` false) | 9 |
 *
 * It is always false for implicit data. Measured on an H200 with data of Netflix's shape (bench/results,
 * `als-gpu-workgroups`, and docs/decisions/gpu-8-bits.md).
 */
export function solvingForm(
  info: GpuInfo,
  { rank, biases, implicit = false }: Pick<UpdateProblem, 'rank' | 'biases' | 'implicit'>,
  precision: 'f16' | 'int8',
): SolvingForm {
  const tiles = tilesOf(rank);
  const halfA =
    !implicit &&
    (precision === 'f16'
      ? rank > FULL_REGISTERS || (tiles === 9 && !(biases && hasRatingRow(rank)))
      : rank > INT8_FULL_REGISTERS || tiles === 7 || (tiles === 8 && !biases));
  const room = halfA ? roomOf(precision, rank, biases) : undefined;
  const admitted =
    room !== undefined &&
    (precision === 'int8'
      ? admits(info, updateInt8Kernel, { rank, biases, halfA, room })
      : admits(info, updateTensorKernel, { rank, bin: LEAST_BIN, biases, halfA, room }));
  return admitted ? { halfA, room } : { halfA };
}

/**
 * Number of 16 x 16 tiles of A that the fused kernel has in workgroup memory at the same time, when it moves
 * A from the accumulators of the tensor cores to their operands. The numbers are chosen for an H200.
 * Registers and 48 KiB of workgroup memory limit the workgroups that run at the same time on a
 * multiprocessor; with these numbers, memory is never the tighter limit. Undefined: the kernel's default.
 */
function roomOf(precision: 'f16' | 'int8', rank: number, biases: boolean): number | undefined {
  const tiles = tilesOf(rank);
  if (precision === 'f16') return tiles >= 11 ? 21 : tiles === 9 ? (biases ? 12 : 13) : undefined;
  if (tiles >= 9) return rank <= INT8_EVEN_LANES.ofRows ? 13 : 26;
  return tiles === 8 ? 8 : tiles === 7 ? 6 : undefined;
}

/** Largest rank of the fused kernel for implicit data, which adds the Gram matrix of θ to A. */
const IMPLICIT_REGISTERS = 128;

/**
 * True if the GPU can run the fused kernel for this problem: update-tensor, or for implicit data
 * update-implicit-tensor, which always keeps A in registers in float32.
 */
export function admitsFused(
  info: GpuInfo,
  { rank, biases, implicit = false }: Pick<UpdateProblem, 'rank' | 'biases' | 'implicit'>,
  bin: number,
  { halfA, room }: SolvingForm,
): boolean {
  if (implicit) return rank <= IMPLICIT_REGISTERS && admits(info, updateImplicitTensorKernel, { rank, bin });
  return admits(info, updateTensorKernel, { rank, bin, biases, implicit, halfA, room });
}

/** True if the GPU can run update-int8, the fused kernel that reads θ in 8 bits. */
export function admitsInt8(
  info: GpuInfo,
  { rank, biases }: Pick<UpdateProblem, 'rank' | 'biases'>,
  { halfA, room }: SolvingForm,
): boolean {
  return admits(info, updateInt8Kernel, { rank, biases, halfA, room });
}

/**
 * Largest rank at which the fused kernel can keep A in registers in float32. It depends on the precision in
 * which θ is read, which follows from the kernel that sums A.
 */
export function fullRegisters(sum: UpdateVariant['sum']): number {
  return sum.kernel === 'int8' ? INT8_FULL_REGISTERS : FULL_REGISTERS;
}
