/** The kernels on tensor cores against float64 on the same float16 factors. */
import { normalEquationsTensorKernel, type TensorParams, updateTensorKernel, type UpdateTensorParams } from './normal-equations-tensor.ts';
import { updateShortKernel, type UpdateShortParams } from '../update/update-short.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../kernel.ts';
import { EntryList } from '../../update/work.ts';
import type { KernelCheck } from '../checking/check.ts';
import { halfBits } from '../checking/float16.ts';
import { partsOf, slotsError, summedSlots } from './normal-equations.check.ts';
import { type Expectation, problemBuffers, problemError, ratedProblem, type RatedProblem } from '../checking/rated-problem.ts';
import { ratedRows } from '../checking/rated-rows.ts';
import { CG_HALF_LIMIT, NO_ROW, RESIDUAL_LIMIT, variantOf } from '../solve/solve-cg.check.ts';

const RANKS = [1, 7, 10, 32, 63, 64, 100, 128, 200, 256];
const LONGEST = 10_000;

/** Float32 A stays in registers up to this rank. */
const FULL_REGISTERS = 128;

/** Of the largest element of A or b: the rounding of sums, where tensor cores may cut off instead, once for every sixteen ratings. */
const SUM_LIMIT = 1e-5 + (LONGEST / 16) * 2 ** -23;

/** Of the largest element of x after as many steps in float64: what SUM_LIMIT allows, seen through the solver. */
export const CG_TENSOR_LIMIT = 1e-3;
/** The same with biases, see CG_BIAS_LIMIT; rows of thousands of ratings have the largest eigenvalues. */
export const CG_TENSOR_BIAS_LIMIT = 8e-3;

const sums: readonly { readonly params: TensorParams; readonly scale?: number }[] = [
  ...RANKS.map((rank) => ({ params: { rank, bin: 32, biases: false } })),
  ...[10, 100, 200].map((rank) => ({ params: { rank, bin: 16, biases: true } })),
  ...[64, 100, 128].map((rank) => ({ params: { rank, bin: 64, biases: false }, scale: 0.25 })),
  ...[10, 64, 100].map((rank) => ({ params: { rank, bin: 32, biases: true }, scale: 8 })),
];

/** Long rows in three parts and as one. */
const sumChecks: readonly KernelCheck[] = sums.flatMap(({ params, scale = 1 }) =>
  [3, 1].map((cuts) => ({
    name: normalEquationsTensorKernel.name,
    variant: `${variantOf(params)}, scale ${scale}, ${cuts === 1 ? 'whole rows' : 'long rows in parts'}`,
    admitted: (gpu: Gpu) => gpu.admits(normalEquationsTensorKernel, params),
    run: (gpu: Gpu) => checkSums(gpu, params, scale, cuts),
  })),
);

async function checkSums(gpu: Gpu, params: TensorParams, scale: number, cuts: number) {
  const { rank, biases, bin } = params;
  const rows = ratedRows({ rank, biases, precision: 'f16', lengths: lengthsFor(bin) });
  const parts = partsOf(rows, Math.ceil(LONGEST / cuts / bin) * bin);
  const uniforms = { zero_row: rows.columns, scale, unscale: 1 / scale };
  const slots = await summedSlots(gpu, normalEquationsTensorKernel, params, rows, parts, { precision: 'f16', uniforms, workgroups: parts.count });
  return { error: slotsError(rows, parts, slots), limit: SUM_LIMIT };
}

/** Around a bin, and around the four bins of the ring; more rows than workgroups. */
function lengthsFor(bin: number): number[] {
  return [LONGEST, 0, 5 * bin + 1, 4 * bin, 3 * bin - 1, bin + 1, bin, bin - 1, 17, 16, 15, 2, 1, 0, 1];
}

const common = { bin: 32, biases: false, steps: 6, halfA: false };

const updates: readonly { readonly params: UpdateTensorParams; readonly scale?: number }[] = [
  ...RANKS.map((rank) => ({ params: { ...common, rank, halfA: rank > FULL_REGISTERS } })),
  ...[7, 64, 100].map((rank) => ({ params: { ...common, rank, halfA: true }, scale: 0.25 })),
  ...[10, 100, 128].map((rank) => ({ params: { ...common, rank, biases: true }, scale: 8 })),
  { params: { ...common, rank: 101, biases: true, halfA: true } },
  { params: { ...common, rank: 10, bin: 16, steps: 3 } },
  { params: { ...common, rank: 100, bin: 16, biases: true } },
  { params: { ...common, rank: 100, steps: 1 } },
];

const updateChecks: readonly KernelCheck[] = updates.map(({ params, scale = 1 }) => ({
  name: updateTensorKernel.name,
  variant: `${variantOf(params)}, scale ${scale}`,
  admitted: (gpu: Gpu) => gpu.admits(updateTensorKernel, params),
  run: async (gpu: Gpu) => {
    const { rank, biases, bin, steps, halfA } = params;
    const problem = ratedProblem({ rank, biases, precision: 'f16', lengths: lengthsFor(bin) });
    const error = await checkUpdate(gpu, updateTensorKernel, params, problem, { scale, expectation: { steps, exactTo: -1 } });
    return { error, limit: biases ? CG_TENSOR_BIAS_LIMIT : halfA ? CG_HALF_LIMIT : CG_TENSOR_LIMIT };
  },
}));

const shorts: readonly UpdateShortParams[] = [
  ...RANKS.map((rank) => ({ rank, longest: 64, biases: false })),
  ...[1, 10, 64, 100, 200].map((rank) => ({ rank, longest: 32, biases: false })),
  ...[7, 12, 64, 101].flatMap((rank) => [32, 64].map((longest) => ({ rank, longest, biases: true }))),
];

/** Rows of every length that the variant takes. */
const shortChecks: readonly KernelCheck[] = shorts.map((params) => ({
  name: updateShortKernel.name,
  variant: variantOf(params),
  admitted: (gpu: Gpu) => gpu.admits(updateShortKernel, params),
  run: async (gpu: Gpu) => {
    const { rank, biases, longest } = params;
    const lengths = Array.from({ length: longest + 1 }, (_, at) => longest - at);
    const problem = ratedProblem({ rank, biases, precision: 'f16', lengths });
    return { error: await checkUpdate(gpu, updateShortKernel, params, problem, { scale: 1, expectation: { steps: 0, exactTo: longest } }), limit: RESIDUAL_LIMIT };
  },
}));

interface UpdateCheck {
  readonly scale: number;
  readonly expectation: Expectation;
}

/** Three workgroups walk all rows. */
async function checkUpdate<Params extends KernelParams>(gpu: Gpu, kernel: KernelDescriptor<Params>, params: Params, problem: RatedProblem, { scale, expectation }: UpdateCheck): Promise<number> {
  const { status, buffers } = await runUpdate(gpu, kernel, params, problem, scale);
  const error = status === NO_ROW ? await problemError(gpu, problem, buffers, true, expectation) : Infinity;
  for (const buffer of Object.values(buffers)) buffer.destroy();
  return error;
}

async function runUpdate<Params extends KernelParams>(gpu: Gpu, kernel: KernelDescriptor<Params>, params: Params, problem: RatedProblem, scale: number) {
  const { ratings, lengths, lambda } = problem;
  const work = new EntryList();
  lengths.forEach((length, row) => work.add(row, ratings.offsets[row], length, 0));
  const { entries, count } = work.list;
  const buffers = await problemBuffers(gpu, problem, 'f16');
  buffers.work = await gpu.bufferOf(entries, 'work');
  buffers.status = await gpu.bufferOf(new Uint32Array([NO_ROW]), 'status');
  const uniforms = { count, zero_row: ratings.columns, scale, unscale: 1 / scale, lambda, mean: ratings.mean };
  const compiled = await gpu.compile(kernel, params);
  const { bytes } = await gpu.pass(`check ${kernel.name}`).dispatch(compiled, buffers, uniforms, 3).submit({ read: { buffer: buffers.status, bytes: 4 } });
  return { status: new Uint32Array(bytes)[0], buffers };
}

/** A factor of one row's column is infinite: that row must be named, and it alone. */
function notFinite<Params extends KernelParams>(kernel: KernelDescriptor<Params>, params: Params): KernelCheck {
  return {
    name: kernel.name,
    variant: 'a factor that is not finite',
    admitted: (gpu) => gpu.admits(kernel, params),
    run: async (gpu) => {
      const problem = ratedProblem({ rank: 20, biases: false, precision: 'f16', lengths: [30, 20, 9, 5] });
      const { offsets, indices, columns, mirror, stride } = problem.ratings;
      const bad = columns - 1;
      for (let k = 0; k < offsets[4]; k++) if (indices[k] === bad) indices[k]--;
      indices[offsets[3] - 1] = bad;
      mirror[(bad * stride) / 2] = halfBits(Infinity);
      const { status, buffers } = await runUpdate(gpu, kernel, params, problem, 1);
      for (const buffer of Object.values(buffers)) buffer.destroy();
      return { error: status === 2 ? 0 : Infinity, limit: 0 };
    },
  };
}

export const tensorChecks: readonly KernelCheck[] = [
  ...sumChecks,
  ...updateChecks,
  notFinite(updateTensorKernel, { ...common, rank: 20 }),
  ...shortChecks,
  notFinite(updateShortKernel, { rank: 20, longest: 32, biases: false }),
];
