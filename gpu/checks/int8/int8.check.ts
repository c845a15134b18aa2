/**
 * Checks of kernels with factors in 8 bits. The test factors are numbers that 8 bits can represent exactly.
 */
import type { Gpu } from '../../webgpu/gpu.ts';
import {
  type KernelCheck,
  variantOf,
  randomNumbers,
  CG_BIAS_LIMIT,
  CG_HALF_LIMIT,
  CG_LIMIT,
} from '../support/check.ts';
import { halfMirror, roundToHalf } from '../support/float16.ts';
import { lengthsAround, LONGEST, ratedProblem } from '../support/rated-problem.ts';
import { ratedRows } from '../support/rated-rows.ts';
import { LEVEL_LENGTHS } from '../support/solved-rows.ts';
import { updateError } from '../support/tensor-updates.ts';
import { paddedRank } from '../../device/slots.ts';
import { partsOf, slotsError, summedSlots } from '../equations/normal-equations.check.ts';
import { int8Bytes, normalEquationsInt8Kernel, addInt8 } from '../../int8/int8-plan.ts';
import { updateInt8Kernel, type UpdateInt8Params } from '../../update/update-tensor.ts';

const BIN = 64;

/**
 * Ratings, which are multiples of 1/64, become whole numbers when they are multiplied by these powers of two.
 */
const SCALES = [64, 1024];

/**
 * Limit of the error, relative to the largest element of A or b. Whole numbers are summed exactly, and the
 * sum is rounded to float32 once.
 */
const SUM_LIMIT = 1e-6;

const sums = [
  ...[33, 40, 64, 100, 101, 136, 144, 152, 168, 200, 256].map((rank) => ({ rank, biases: true })),
  ...[100, 128].map((rank) => ({ rank, biases: false })),
];

const sumChecks: readonly KernelCheck[] = sums.flatMap((params, at) =>
  [3, 1].map((cuts) => ({
    name: normalEquationsInt8Kernel.name,
    variant: `${variantOf(params)}, ${cuts === 1 ? 'whole rows' : 'long rows in parts'}`,
    admitted: (gpu: Gpu) => gpu.admits(normalEquationsInt8Kernel, params),
    run: async (gpu: Gpu) => {
      const { rank, biases } = params;
      const rows = ratedRows({ rank, biases, precision: 'int8', lengths: lengthsAround(BIN) });
      const parts = partsOf(rows, Math.ceil(LONGEST / cuts / BIN) * BIN);
      const scale = SCALES[at % 2];
      const slots = await summedSlots(gpu, normalEquationsInt8Kernel, params, rows, parts, {
        precision: 'int8',
        uniforms: { zero_row: rows.columns, scale, unscale: 1 / scale },
        workgroups: parts.count,
        raw: biases,
      });
      return { error: slotsError(rows, parts, slots), limit: SUM_LIMIT };
    },
  })),
);

const updates: readonly (UpdateInt8Params & { readonly steps: number })[] = [
  ...[33, 40, 64, 100, 128].map((rank) => ({ rank, biases: false, steps: 6, halfA: false })),
  ...[40, 64, 100, 128].map((rank) => ({ rank, biases: true, steps: 6, halfA: false })),
  ...[33, 40, 64, 100, 128, 144, 200, 256].map((rank) => ({
    rank,
    biases: rank === 144,
    steps: 3,
    halfA: true,
  })),
  ...[40, 64, 100, 128].map((rank) => ({ rank, biases: true, steps: 6, halfA: true })),
  ...(
    [
      [100, 6],
      [128, 8],
      [136, 13],
      [160, 26],
    ] as const
  ).map(([rank, room]) => ({ rank, biases: false, steps: 3, halfA: true, room })),
  ...(
    [
      [100, 6],
      [136, 13],
      [144, 13],
      [152, 13],
      [160, 26],
    ] as const
  ).map(([rank, room]) => ({ rank, biases: true, steps: 6, halfA: true, room })),
];

const updateChecks: readonly KernelCheck[] = [
  ...updates.map((params) => ({ params, level: false })),
  ...[false, true].flatMap((halfA) =>
    [40, 64].map((rank) => ({ params: { rank, biases: true, steps: 12, halfA }, level: true })),
  ),
].map(({ params, level }) => ({
  name: updateInt8Kernel.name,
  variant: `${variantOf(params)}${level ? ", from the start's level" : ''}`,
  admitted: (gpu: Gpu) => gpu.admits(updateInt8Kernel, params),
  run: async (gpu: Gpu) => {
    const { steps, ...kernel } = params;
    const { rank, biases, halfA } = kernel;
    const problem = ratedProblem({
      rank,
      biases,
      precision: 'int8',
      lengths: level ? LEVEL_LENGTHS : lengthsAround(BIN),
      level,
    });
    const error = await updateError(gpu, updateInt8Kernel, kernel, problem, {
      scale: 1024,
      expectation: { steps, exactTo: -1 },
      precision: 'int8',
    });
    return { error, limit: halfA ? CG_HALF_LIMIT : biases && !level ? CG_BIAS_LIMIT : CG_LIMIT };
  },
}));

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

export const int8Checks: readonly KernelCheck[] = [...sumChecks, ...updateChecks];

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
    for (let row = 0; row < rows; row++) largest = Math.max(largest, Math.abs(values[row * stride + k]));
    if (Math.abs(found[k] * 127 - largest) > 1e-6 * largest) error = Infinity;
    for (let row = 0; row < rows; row++)
      error = Math.max(
        error,
        Math.abs(bytes[row * pitch + k] - values[row * stride + k] / (found[k] || 1)) / 0.5,
      );
  }
  for (let at = 0; at < rows * pitch; at++) if (at % pitch >= stride && bytes[at] !== 0) error = Infinity;
  return { error, limit: 1.0001 };
}
