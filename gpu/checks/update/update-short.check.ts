/**
 * Checks of short rows, which are solved on tensor cores by their dual systems: one unknown for each rating.
 * They are compared with float64 solutions for the same float16 factors.
 */
import type { Gpu } from '../../webgpu/gpu.ts';
import { type KernelCheck, TENSOR_RANKS, variantOf, RESIDUAL_LIMIT } from '../support/check.ts';
import { ratedProblem } from '../support/rated-problem.ts';
import { notFinite, updateError } from '../support/tensor-updates.ts';
import { updateShortKernel, type UpdateShortParams } from '../../update/update-short.ts';

const shorts: readonly UpdateShortParams[] = [
  ...TENSOR_RANKS.map((rank) => ({ rank, longest: 64, biases: false, centre: false })),
  ...[1, 10, 64, 100, 200].map((rank) => ({ rank, longest: 32, biases: false, centre: false })),
  ...[7, 12, 64, 101].flatMap((rank) =>
    [32, 64].flatMap((longest) => [true, false].map((centre) => ({ rank, longest, biases: true, centre }))),
  ),
];

/** Checks of rows of every length that the variant supports. */
export const updateShortChecks: readonly KernelCheck[] = [
  ...shorts.map((params) => ({
    name: updateShortKernel.name,
    variant: variantOf(params),
    admitted: (gpu: Gpu) => gpu.admits(updateShortKernel, params),
    run: async (gpu: Gpu) => {
      const { rank, biases, longest, centre } = params;
      const lengths = Array.from({ length: longest + 1 }, (_, at) => longest - at);
      const problem = ratedProblem({ rank, biases, precision: 'f16', lengths });
      return {
        error: await updateError(gpu, updateShortKernel, params, problem, {
          scale: 1,
          expectation: { steps: 0, exactTo: longest },
          centre,
        }),
        limit: RESIDUAL_LIMIT,
      };
    },
  })),
  notFinite(updateShortKernel, { rank: 20, longest: 32, biases: false, centre: false }),
];
