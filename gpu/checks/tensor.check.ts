/**
 * Checks of the kernels on tensor cores, in float16 and in 8 bits, against float64 on the same rounded factors:
 * normal equations, rows that one kernel sums and solves, and short rows, which are solved by their dual systems
 * (one unknown for each rating). Factors of 8 bits are numbers that 8 bits can represent exactly.
 */
import { paddedRank } from '../device/slots.ts';
import { normalEquationsTensorKernel, type TensorParams } from '../equations/normal-equations-tensor.ts';
import { centresRatings } from '../equations/tensor-plan.ts';
import { addInt8, int8Bytes, normalEquationsInt8Kernel } from '../int8/int8-plan.ts';
import { EntryList } from '../update/deal-rows.ts';
import { updateShortKernel, type UpdateShortParams } from '../update/update-short.ts';
import {
  updateInt8Kernel,
  type UpdateInt8Params,
  updateTensorKernel,
  type UpdateTensorParams,
} from '../update/update-tensor.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../webgpu/kernel.ts';
import { sumCheck } from './normal-equations.check.ts';
import {
  CG_BIAS_LIMIT,
  CG_HALF_LIMIT,
  CG_LIMIT,
  CG_TENSOR_BIAS_LIMIT,
  CG_TENSOR_LIMIT,
  type KernelCheck,
  NO_ROW,
  randomNumbers,
  RESIDUAL_LIMIT,
  TENSOR_RANKS,
  variantOf,
  halfBits,
  roundToHalf,
} from './support/check.ts';
import {
  type Expectation,
  lengthsAround,
  LONGEST,
  problemBuffers,
  problemError,
  ratedProblem,
  type RatedProblem,
} from './support/rated-problem.ts';
import { halfMirror, LEVEL_LENGTHS, shiftsOf } from './support/rated-rows.ts';

/** Ratings that a kernel in 8 bits takes at a time. */
const INT8_BIN = 64;

/**
 * Limits of the error of sums, relative to the largest element of A or b. Tensor cores may truncate a sum of
 * float16 products instead of rounding it, once for every sixteen ratings. Whole numbers are summed exactly, and
 * the sum is rounded to float32 once.
 */
const SUM_LIMIT = 1e-5 + (LONGEST / 16) * 2 ** -23;
const INT8_SUM_LIMIT = 1e-6;

const sums: readonly { readonly params: TensorParams; readonly scale?: number }[] = [
  ...TENSOR_RANKS.map((rank) => ({ params: { rank, bin: 32, biases: false } })),
  ...[10, 100, 200].map((rank) => ({ params: { rank, bin: 16, biases: true } })),
  ...[64, 100, 128].map((rank) => ({ params: { rank, bin: 64, biases: false }, scale: 0.25 })),
  ...[10, 64, 100].map((rank) => ({ params: { rank, bin: 32, biases: true }, scale: 8 })),
];

const int8Sums = [
  ...[33, 40, 64, 100, 101, 136, 144, 152, 168, 200, 256].map((rank) => ({ rank, biases: true })),
  ...[100, 128].map((rank) => ({ rank, biases: false })),
];

/** A variant is checked with long rows cut into three parts, and with whole rows. */
function cutsOf(bin: number) {
  return [3, 1].map((cuts) => ({
    what: cuts === 1 ? 'whole rows' : 'long rows in parts',
    lengths: lengthsAround(bin),
    part: Math.ceil(LONGEST / cuts / bin) * bin,
  }));
}

const common = { bin: 32, biases: false, steps: 6, halfA: false };

/** Largest rank at which A is in float32: at larger ranks it does not fit the registers. */
const FULL_REGISTERS = 144;

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

const rooms = [
  { biases: false, steps: 3, rooms: { 100: 6, 128: 8, 136: 13, 160: 26 } },
  { biases: true, steps: 6, rooms: { 100: 6, 136: 13, 144: 13, 152: 13, 160: 26 } },
];

const int8Updates: readonly {
  readonly params: UpdateInt8Params & { readonly steps: number };
  readonly level?: boolean;
}[] = [
  ...[33, 40, 64, 100, 128].map((rank) => ({ rank, biases: false, steps: 6, halfA: false })),
  ...[40, 64, 100, 128].map((rank) => ({ rank, biases: true, steps: 6, halfA: false })),
  ...[33, 40, 64, 100, 128, 144, 200, 256].map((rank) => ({
    rank,
    biases: rank === 144,
    steps: 3,
    halfA: true,
  })),
  ...[40, 64, 100, 128].map((rank) => ({ rank, biases: true, steps: 6, halfA: true })),
  ...rooms.flatMap(({ rooms: own, ...shape }) =>
    Object.entries(own).map(([rank, room]) => ({ rank: Number(rank), ...shape, halfA: true, room })),
  ),
]
  .map((params) => ({ params, level: false }))
  .concat(
    [false, true].flatMap((halfA) =>
      [40, 64].map((rank) => ({ params: { rank, biases: true, steps: 12, halfA }, level: true })),
    ),
  );

const shorts: readonly UpdateShortParams[] = [
  ...TENSOR_RANKS.map((rank) => ({ rank, longest: 64, biases: false, centre: false })),
  ...[1, 10, 64, 100, 200].map((rank) => ({ rank, longest: 32, biases: false, centre: false })),
  ...[7, 12, 64, 101].flatMap((rank) =>
    [32, 64].flatMap((longest) => [true, false].map((centre) => ({ rank, longest, biases: true, centre }))),
  ),
];

interface UpdateCase extends UpdateCheck {
  readonly variant: string;
  readonly lengths: readonly number[];
  /** Rows and a start from which CG converges within a few steps (RatedRowsOptions). */
  readonly level?: boolean;
  readonly limit: number;
}

function updateCheck<Params extends KernelParams & { readonly rank: number; readonly biases: boolean }>(
  kernel: KernelDescriptor<Params>,
  params: Params,
  { variant, lengths, level = false, limit, ...how }: UpdateCase,
): KernelCheck {
  return {
    name: kernel.name,
    variant: `${variant}${level ? ", from the start's level" : ''}`,
    admitted: (gpu) => gpu.admits(kernel, params),
    run: async (gpu) => {
      const { rank, biases } = params;
      const problem = ratedProblem({ rank, biases, precision: how.precision ?? 'f16', lengths, level });
      return { error: await updateError(gpu, kernel, params, problem, how), limit };
    },
  };
}

/** Kernels for GPUs with tensor cores. */
export const tensorChecks: readonly KernelCheck[] = [
  ...sums.flatMap(({ params, scale = 1 }) =>
    cutsOf(params.bin).map(({ what, ...rows }) =>
      sumCheck(normalEquationsTensorKernel, params, `${variantOf(params)}, scale ${scale}, ${what}`, {
        ...rows,
        precision: 'f16',
        scale,
        raw: centresRatings(params),
        limit: SUM_LIMIT,
      }),
    ),
  ),
  ...updates.map(({ params: { steps, ...params }, scale = 1, level = false }) =>
    updateCheck(updateTensorKernel, params, {
      variant: `${variantOf({ ...params, steps })}, scale ${scale}`,
      lengths: level ? LEVEL_LENGTHS : lengthsAround(params.bin),
      level,
      scale,
      expectation: { steps, exactTo: -1 },
      limit: params.biases && !level ? CG_TENSOR_BIAS_LIMIT : params.halfA ? CG_HALF_LIMIT : CG_TENSOR_LIMIT,
    }),
  ),
  notFinite(updateTensorKernel, { bin: 32, biases: false, halfA: false, rank: 20 }),
  ...shorts.map((params) =>
    updateCheck(updateShortKernel, params, {
      variant: variantOf(params),
      lengths: Array.from({ length: params.longest + 1 }, (_, at) => params.longest - at),
      scale: 1,
      expectation: { steps: 0, exactTo: params.longest },
      centre: params.centre,
      limit: RESIDUAL_LIMIT,
    }),
  ),
  notFinite(updateShortKernel, { rank: 20, longest: 32, biases: false, centre: false }),
  // Ratings, which are multiples of 1/64, become whole numbers when they are multiplied by these powers of two.
  ...int8Sums.flatMap((params, at) =>
    cutsOf(INT8_BIN).map(({ what, ...rows }) =>
      sumCheck(normalEquationsInt8Kernel, params, `${variantOf(params)}, ${what}`, {
        ...rows,
        precision: 'int8',
        scale: [64, 1024][at % 2],
        raw: params.biases,
        limit: INT8_SUM_LIMIT,
      }),
    ),
  ),
  ...int8Updates.map(({ params: { steps, ...params }, level = false }) =>
    updateCheck(updateInt8Kernel, params, {
      variant: variantOf({ ...params, steps }),
      lengths: level ? LEVEL_LENGTHS : lengthsAround(INT8_BIN),
      level,
      scale: 1024,
      expectation: { steps, exactTo: -1 },
      precision: 'int8',
      limit: params.halfA ? CG_HALF_LIMIT : params.biases && !level ? CG_BIAS_LIMIT : CG_LIMIT,
    }),
  ),
];

interface UpdateCheck {
  readonly scale: number;
  readonly expectation: Expectation;
  /** Precision of the factors that the kernel reads. */
  readonly precision?: 'f16' | 'int8';
  /**
   * True: the kernel itself subtracts mean and biases from the ratings. False: they are subtracted before, as
   * for kernels that only sum.
   */
  readonly centre?: boolean;
}

/** Runs a kernel whose three workgroups share all rows, and returns the largest error. */
export async function updateError<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params,
  problem: RatedProblem,
  how: UpdateCheck,
): Promise<number> {
  const { status, buffers } = await runUpdate(gpu, kernel, params, problem, how);
  // The objectives are after the lowest bad row.
  const words = new Uint32Array(4 + problem.lengths.length);
  await gpu.download(buffers.status, words);
  const expectation = { ...how.expectation, objectives: new Float32Array(words.buffer, 16) };
  const error = status === NO_ROW ? await problemError(gpu, problem, buffers, true, expectation) : Infinity;
  for (const buffer of Object.values(buffers)) buffer.destroy();
  return error;
}

async function runUpdate<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params,
  problem: RatedProblem,
  { scale, expectation: { steps }, precision = 'f16', centre }: UpdateCheck,
) {
  const { ratings, lengths, regularization, biases } = problem;
  const work = new EntryList();
  lengths.forEach((length, row) => work.add(row, ratings.offsets[row], length, 0));
  const { entries, count } = work.list;
  const raw = centre ?? (precision === 'int8' ? biases : centresRatings({ rank: ratings.rank, biases }));
  const buffers = {
    ...(await problemBuffers(gpu, problem, precision, raw)),
    work: await gpu.bufferOf(entries, 'work'),
    shifts: await gpu.bufferOf(shiftsOf(lengths, biases, regularization), 'shifts'),
    status: await gpu.bufferOf(new Uint32Array(4 + lengths.length).fill(NO_ROW), 'status'),
  };
  const uniforms = {
    count,
    zero_row: ratings.columns,
    scale,
    unscale: 1 / scale,
    mean: ratings.mean,
    steps,
  };
  const { bytes } = await gpu
    .pass(`check ${kernel.name}`)
    .dispatch(await gpu.compile(kernel, params), buffers, uniforms, 3)
    .submit({ read: { buffer: buffers.status, bytes: 4 } });
  return { status: new Uint32Array(bytes)[0], buffers };
}

/** Makes a check that a kernel reports a row if an infinite factor belongs to one of the row's columns. */
function notFinite<Params extends KernelParams>(
  kernel: KernelDescriptor<Params>,
  params: Params,
): KernelCheck {
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
      const how = { scale: 1, expectation: { steps: 6, exactTo: -1 } };
      const { status, buffers } = await runUpdate(gpu, kernel, params, problem, how);
      for (const buffer of Object.values(buffers)) buffer.destroy();
      return { error: status === 2 ? 0 : Infinity, limit: 0 };
    },
  };
}

/** Checks of the rounding kernels, which every GPU runs. */
export const toInt8Checks: readonly KernelCheck[] = [
  { rank: 20, rows: 1 },
  { rank: 100, rows: 700 },
  { rank: 40, rows: 1500 },
].map(({ rank, rows }) => ({
  name: 'to-int8',
  variant: variantOf({ rank, rows }),
  run: (gpu: Gpu) => checkRounding(gpu, rank, rows),
}));

/**
 * Compares each rounded number, times its column's scale, with the original number; the error is in units of
 * half a scale. Scales, padding and the last row (zeros) must be exact.
 */
async function checkRounding(gpu: Gpu, rank: number, rows: number) {
  const stride = paddedRank(rank);
  const random = randomNumbers(rank);
  // The second column is 0 and has no scale; the others differ in magnitude.
  const values = Float32Array.from({ length: rows * stride }, (_, at) =>
    at % stride >= rank || at % stride === 1 ? 0 : roundToHalf((random() - 0.5) * 4 ** ((at % stride) % 5)),
  );
  const half = await gpu.bufferOf(halfMirror(values, stride), 'half');
  const pass = gpu.pass('check to-int8');
  const { rounded, scales } = await addInt8(gpu, pass, { rows, columns: rank, half });
  await pass.submit();
  const [bytes, found] = [new Int8Array(int8Bytes(rows, rank)), new Float32Array(stride)];
  await gpu.download(rounded, bytes);
  await gpu.download(scales, found);
  half.destroy();
  const pitch = bytes.length / (rows + 1);
  let error = bytes.subarray(rows * pitch).every((value) => value === 0) ? 0 : Infinity;
  for (let k = 0; k < stride; k++) {
    let largest = 0;
    for (let row = 0; row < rows; row++) {
      const value = values[row * stride + k];
      largest = Math.max(largest, Math.abs(value));
      error = Math.max(error, Math.abs(bytes[row * pitch + k] - value / (found[k] || 1)) / 0.5);
    }
    if (Math.abs(found[k] * 127 - largest) > 1e-6 * largest) error = Infinity;
  }
  for (let at = 0; at < rows * pitch; at++) if (at % pitch >= stride && bytes[at] !== 0) error = Infinity;
  return { error, limit: 1.0001 };
}
