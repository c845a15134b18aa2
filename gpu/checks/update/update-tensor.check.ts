/**
 * Checks of the kernel that sums a row's equations on tensor cores and solves them, against float64 on the
 * same float16 factors.
 */
import type { Gpu } from '../../webgpu/gpu.ts';
import {
  type KernelCheck,
  TENSOR_RANKS,
  variantOf,
  CG_HALF_LIMIT,
  CG_TENSOR_BIAS_LIMIT,
  CG_TENSOR_LIMIT,
} from '../support/check.ts';
import { lengthsAround, ratedProblem } from '../support/rated-problem.ts';
import { LEVEL_LENGTHS } from '../support/solved-rows.ts';
import { notFinite, updateError } from '../support/tensor-updates.ts';
import { updateTensorKernel, type UpdateTensorParams } from '../../update/update-tensor.ts';

/** Largest rank at which A is in float32: at larger ranks it does not fit the registers. */
const FULL_REGISTERS = 144;

const common = { bin: 32, biases: false, steps: 6, halfA: false };

const updates: readonly {
  readonly params: UpdateTensorParams & { readonly steps: number };
  readonly scale?: number;
  readonly level?: boolean;
}[] = [
  ...TENSOR_RANKS.map((rank) => ({ params: { ...common, rank, halfA: rank > FULL_REGISTERS } })),
  ...[7, 40, 64, 100, 128].map((rank) => ({ params: { ...common, rank, halfA: true }, scale: 0.25 })),
  ...[10, 100, 128].map((rank) => ({ params: { ...common, rank, biases: true }, scale: 8 })),
  ...[40, 64, 101, 128, 144, 200].map((rank) => ({ params: { ...common, rank, biases: true, halfA: true } })),
  ...[32, 64].map((rank) => ({
    params: { ...common, rank, biases: true, steps: 12, halfA: true },
    level: true,
  })),
  ...[32, 64, 128].map((rank) => ({ params: { ...common, rank, biases: true, steps: 12 }, level: true })),
  { params: { ...common, rank: 10, bin: 16, steps: 3 } },
  { params: { ...common, rank: 100, bin: 16, biases: true } },
  { params: { ...common, rank: 100, steps: 1 } },
  { params: { ...common, rank: 136, halfA: true, room: 13 } },
  { params: { ...common, rank: 136, biases: true, halfA: true, room: 12 } },
];

export const updateTensorChecks: readonly KernelCheck[] = [
  ...updates.map(({ params, scale = 1, level = false }) => ({
    name: updateTensorKernel.name,
    variant: `${variantOf(params)}, scale ${scale}${level ? ", from the start's level" : ''}`,
    admitted: (gpu: Gpu) => gpu.admits(updateTensorKernel, params),
    run: async (gpu: Gpu) => {
      const { steps, ...variant } = params;
      const { rank, biases, bin, halfA } = variant;
      const problem = ratedProblem({
        rank,
        biases,
        precision: 'f16',
        lengths: level ? LEVEL_LENGTHS : lengthsAround(bin),
        level,
      });
      const error = await updateError(gpu, updateTensorKernel, variant, problem, {
        scale,
        expectation: { steps, exactTo: -1 },
      });
      return {
        error,
        limit: biases && !level ? CG_TENSOR_BIAS_LIMIT : halfA ? CG_HALF_LIMIT : CG_TENSOR_LIMIT,
      };
    },
  })),
  notFinite(updateTensorKernel, { bin: 32, biases: false, halfA: false, rank: 20 }),
];
