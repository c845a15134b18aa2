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

/** Largest rank with float32 A in registers; above, A is float16. */
export const FULL_REGISTERS = 144;

/** The same where factors are read in 8 bits. */
const INT8_FULL_REGISTERS = 128;

/**
 * The form of A in the kernel that sums and solves. Either A / n in float16 on tensor cores, with `room`
 * tiles in workgroup memory at the same time; or A in float32 in registers.
 */
export interface SolvingForm {
  readonly halfA: boolean;
  readonly room?: number;
}

/**
 * The rule for this form. A / n is on tensor cores if A does not fit the registers, and also in these cases:
 *
 * | factors | biases | tiles |
 * |---|---|---|
 * | 8 bits | any | 7 |
 * | 8 bits | without | 8 |
 * | float16 | without | 9 |
 * | float16 | with, if the ratings have no tile row of their own | 9 |
 *
 * Measured on an H200 with Netflix's shape (bench/results, `als-gpu-workgroups`, and
 * docs/decisions/gpu-8-bits.md).
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
 * Tiles of A in workgroup memory, chosen for an H200. Registers and 48 KiB of workgroup memory limit the
 * number of concurrent workgroups on a multiprocessor; with these values, memory is never the tighter limit.
 * Undefined: the kernel's default.
 */
function roomOf(precision: 'f16' | 'int8', rank: number, biases: boolean): number | undefined {
  const tiles = tilesOf(rank);
  if (precision === 'f16') return tiles >= 11 ? 21 : tiles === 9 ? (biases ? 12 : 13) : undefined;
  if (tiles >= 9) return rank <= INT8_EVEN_LANES.ofRows ? 13 : 26;
  return tiles === 8 ? 8 : tiles === 7 ? 6 : undefined;
}

/** The largest rank at which the Gram matrix of implicit data can be added. */
const IMPLICIT_REGISTERS = 128;

/** True where the kernel that sums and solves can be used; with implicit data, for A in float32 registers. */
export function admitsFused(
  info: GpuInfo,
  { rank, biases, implicit = false }: Pick<UpdateProblem, 'rank' | 'biases' | 'implicit'>,
  bin: number,
  { halfA, room }: SolvingForm,
): boolean {
  if (implicit) return rank <= IMPLICIT_REGISTERS && admits(info, updateImplicitTensorKernel, { rank, bin });
  return admits(info, updateTensorKernel, { rank, bin, biases, implicit, halfA, room });
}

/** The same for the kernel that sums in 8 bits. */
export function admitsInt8(
  info: GpuInfo,
  { rank, biases }: Pick<UpdateProblem, 'rank' | 'biases'>,
  { halfA, room }: SolvingForm,
): boolean {
  return admits(info, updateInt8Kernel, { rank, biases, halfA, room });
}

/** The largest rank whose A fits registers. */
export function fullRegisters(sum: UpdateVariant['sum']): number {
  return sum.kernel === 'int8' ? INT8_FULL_REGISTERS : FULL_REGISTERS;
}
