/** Checks normal equations summed on tensor cores against float64 sums of the same float16 factors. */
import type { Gpu } from '../../webgpu/gpu.ts';
import { type KernelCheck, TENSOR_RANKS, variantOf } from '../support/check.ts';
import { lengthsAround, LONGEST } from '../support/rated-problem.ts';
import { ratedRows } from '../support/rated-rows.ts';
import { normalEquationsTensorKernel, type TensorParams } from '../../equations/normal-equations-tensor.ts';
import { centresRatings } from '../../equations/tensor-plan.ts';
import { partsOf, slotsError, summedSlots } from './normal-equations.check.ts';

/**
 * Limit of the error, relative to the largest element of A or b. Tensor cores may truncate a sum instead of
 * rounding it, once for every sixteen ratings.
 */
const SUM_LIMIT = 1e-5 + (LONGEST / 16) * 2 ** -23;

const sums: readonly { readonly params: TensorParams; readonly scale?: number }[] = [
  ...TENSOR_RANKS.map((rank) => ({ params: { rank, bin: 32, biases: false } })),
  ...[10, 100, 200].map((rank) => ({ params: { rank, bin: 16, biases: true } })),
  ...[64, 100, 128].map((rank) => ({ params: { rank, bin: 64, biases: false }, scale: 0.25 })),
  ...[10, 64, 100].map((rank) => ({ params: { rank, bin: 32, biases: true }, scale: 8 })),
];

/** Each variant is checked with long rows cut into three parts, and with whole rows. */
export const normalEquationsTensorChecks: readonly KernelCheck[] = sums.flatMap(({ params, scale = 1 }) =>
  [3, 1].map((cuts) => ({
    name: normalEquationsTensorKernel.name,
    variant: `${variantOf(params)}, scale ${scale}, ${cuts === 1 ? 'whole rows' : 'long rows in parts'}`,
    admitted: (gpu: Gpu) => gpu.admits(normalEquationsTensorKernel, params),
    run: (gpu: Gpu) => checkSums(gpu, params, scale, cuts),
  })),
);

async function checkSums(gpu: Gpu, params: TensorParams, scale: number, cuts: number) {
  const { rank, biases, bin } = params;
  const rows = ratedRows({ rank, biases, precision: 'f16', lengths: lengthsAround(bin) });
  const parts = partsOf(rows, Math.ceil(LONGEST / cuts / bin) * bin);
  const uniforms = { zero_row: rows.columns, scale, unscale: 1 / scale };
  const slots = await summedSlots(gpu, normalEquationsTensorKernel, params, rows, parts, {
    precision: 'f16',
    uniforms,
    workgroups: parts.count,
    raw: centresRatings(params),
  });
  return { error: slotsError(rows, parts, slots), limit: SUM_LIMIT };
}
