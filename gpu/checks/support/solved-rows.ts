import { biasedGradients, shifted } from '../../../cpu/reference/biased.ts';
import { conjugateGradient, multiply } from '../../../cpu/reference/conjugate-gradient.ts';
import type { NormalEquations } from '../../../cpu/reference/normal-equations.ts';
import { strideOf } from '../../device/resources.ts';
import { EntryList } from '../../update/deal-rows.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { slotElements } from '../../device/slots.ts';
import { fromHalf } from '../../../engine/numbers/half.ts';
import { randomNumbers } from './check.ts';
import { partEquations, ratedRows, readSlot, writeSlot } from './rated-rows.ts';
import { uploadAll } from './run-kernel.ts';
import type { RowRegularization } from '../../../operators/tasks/task-types.ts';

/**
 * Value in slots beyond the rank. Kernels that fill slots may leave any number there, so solvers must not
 * read it.
 */
const BEYOND = 1234;

/** Value of outputs before a kernel runs. */
const STALE = 3e7;

/** Rows of the output after the solved ones, which must not change. */
const OTHER_ROWS = 2;

/** Lengths of rows that CG solves within a few steps if factors are made with `level` (RatedRowsOptions). */
export const LEVEL_LENGTHS = [10_000, 3000, 1000, 300];

/** Initial factors and memory for outputs, of the rows to be solved and of a few others. */
export interface RowData {
  /** A start for every row. */
  readonly previous: Float32Array;
  readonly factors: Float32Array;
  readonly half: Uint32Array;
  readonly bias: Float32Array;
}

/**
 * Random initial factors for `solved` rows and OTHER_ROWS more. The outputs are filled with a number that the
 * kernel must overwrite in the first rows and keep in the others.
 */
export function rowData(solved: number, rank: number, random: () => number): RowData {
  const rows = solved + OTHER_ROWS;
  const stride = strideOf(rank);
  const previous = new Float32Array(rows * stride);
  for (let row = 0; row < rows; row++)
    for (let k = 0; k < rank; k++) previous[row * stride + k] = random() - 0.5;
  return {
    previous,
    factors: new Float32Array(rows * stride).fill(STALE),
    half: new Uint32Array(((rows + 1) * stride) / 2).fill(0x7bff7bff),
    bias: new Float32Array(rows).fill(STALE),
  };
}

/** The buffers of starts and outputs, by binding name. */
export function uploadRowData(gpu: Gpu, { previous, factors, half, bias }: RowData) {
  return uploadAll(gpu, { previous, factors, half, bias });
}

/** The outputs that kernels wrote. */
export async function downloadOutputs(
  gpu: Gpu,
  buffers: Readonly<Record<string, GPUBuffer>>,
  { factors, half, bias }: RowData,
): Promise<Pick<RowData, 'factors' | 'half' | 'bias'>> {
  const outputs = {
    factors: new Float32Array(factors.length),
    half: new Uint32Array(half.length),
    bias: new Float32Array(bias.length),
  };
  for (const [name, output] of Object.entries(outputs)) await gpu.download(buffers[name], output);
  return outputs;
}

/**
 * Rows whose normal equations are in slots, some of them in several slots that must be added, and their
 * outputs.
 */
export interface SolvedRows extends RowData {
  readonly rank: number;
  readonly biases: boolean;
  readonly stride: number;
  readonly regularization: RowRegularization;
  /** Entries: row, first slot, n, number of slots. */
  readonly work: Uint32Array;
  readonly count: number;
  readonly slots: Float32Array;
}

/**
 * Test rows of the given lengths. They cover special cases of the work list: the first row has three slots,
 * a row without ratings refers to the last row's slot, and row numbers descend.
 */
export function rowsToSolve(
  rank: number,
  biases: boolean,
  lengths: readonly number[],
  level = false,
): SolvedRows {
  const rated = ratedRows({ rank, lengths, biases, precision: 'f32', level });
  const { stride } = rated;
  const random = randomNumbers(rank);
  const work = new EntryList();
  const parts: NormalEquations[] = [];
  const cutsOf = (row: number) => (lengths[row] === 0 ? 0 : row === 0 ? 3 : 1);
  const slotCount = lengths.reduce((sum, _, row) => sum + cutsOf(row), 0);
  lengths.forEach((length, row) => {
    const cuts = cutsOf(row);
    work.add(lengths.length - 1 - row, cuts === 0 ? slotCount - 1 : parts.length, length, cuts);
    for (let cut = 0; cut < cuts; cut++) {
      const [from, to] = [cut, cut + 1].map((at) => rated.offsets[row] + Math.floor((at * length) / cuts));
      parts.push(partEquations(rated, from, to - from));
    }
  });
  const elements = slotElements(rank, biases);
  const slots = new Float32Array(elements * parts.length).fill(BEYOND);
  parts.forEach((part, slot) =>
    writeSlot(slots.subarray(slot * elements, (slot + 1) * elements), rank, part),
  );
  return {
    rank,
    biases,
    stride,
    regularization: regularizationFor(biases, level),
    work: work.list.entries,
    count: work.count,
    slots,
    ...rowData(lengths.length, rank, random),
  };
}

/**
 * The regularization of test rows. With biases it is unusual, so that every term has an effect; with `level`
 * (RatedRowsOptions) it is like a training's.
 */
export function regularizationFor(biases: boolean, level = false): RowRegularization {
  if (level) return { lambda: 0.02, offset: 10, damping: 5 };
  return biases ? { lambda: 0.05, exponent: 0.5, offset: 2, damping: 3 } : { lambda: 0.05 };
}

/** The shifts of rows of n ratings, as the kernel row-shifts writes them. */
export function shiftsOf(
  counts: readonly number[],
  biases: boolean,
  regularization: RowRegularization,
): Float32Array {
  return Float32Array.from(
    counts.flatMap((n) => {
      const { shift, ownShift } = rowShifts(n, regularization);
      return biases ? [shift, ownShift] : [shift];
    }),
  );
}

/** The numbers that regularization adds to the diagonal of a row of n ratings. */
export function rowShifts(n: number, { lambda, exponent = 1, offset = 0, damping = 0 }: RowRegularization) {
  const shift = Math.fround(lambda) * n ** exponent + offset;
  return { shift, ownShift: Math.fround(lambda) * n + damping };
}

/** The equations of a row of n ratings with its regularization added. */
export function regularized(
  equations: NormalEquations,
  n: number,
  biases: boolean,
  regularization: RowRegularization,
): NormalEquations {
  const { shift, ownShift } = rowShifts(n, regularization);
  return shifted(equations, shift, biases ? ownShift : shift);
}

/**
 * The float64 equations of a row, from the float32 values of its slots: A with the regularization on its
 * diagonal, and b. `round` is applied to the elements of A / n first. With biases the last feature is the
 * bias.
 */
export function equationsOf(
  rows: SolvedRows,
  entry: number,
  round?: (value: number) => number,
): NormalEquations {
  const { rank, biases } = rows;
  const [, first, ratings, cuts] = rows.work.subarray(4 * entry, 4 * entry + 4);
  const elements = slotElements(rank, biases);
  const features = rank + (biases ? 1 : 0);
  const matrix = new Float64Array(features ** 2);
  const bias = new Float64Array(features);
  for (let slot = first; slot < first + cuts; slot++) {
    const part = readSlot(
      rows.slots.subarray(slot * elements, (slot + 1) * elements),
      rank,
      biases,
      ratings / cuts,
    );
    part.matrix.forEach((value, i) => (matrix[i] += value));
    part.bias.forEach((value, i) => (bias[i] += value));
  }
  const n = Math.max(1, ratings);
  const ofFactors = (at: number) => at % features < rank && Math.floor(at / features) < rank;
  if (round)
    for (let at = 0; at < matrix.length; at++) if (ofFactors(at)) matrix[at] = round(matrix[at] / n) * n;
  return regularized({ matrix, bias }, n, biases, rows.regularization);
}

/** A row's solution by the same number of CG steps in float64. */
export function expectedSteps(
  equations: NormalEquations,
  biases: boolean,
  start: Float64Array,
  steps: number,
): Float64Array {
  return biases
    ? biasedGradients(equations, start, steps)
    : conjugateGradient(equations.matrix, equations.bias, start, steps);
}

/** ‖A x - b‖ / ‖b‖ */
export function relativeResidual({ matrix, bias }: NormalEquations, x: Float64Array): number {
  const product = multiply(matrix, x);
  return Math.hypot(...product.map((value, i) => value - bias[i])) / (Math.hypot(...bias) || 1);
}

export interface SolvedRow {
  readonly x: Float64Array;
  /** Infinity if the padding or the half mirror's rounding is wrong, else 0. */
  readonly wrong: number;
}

/** A row of the outputs; with biases followed by its bias. */
export function solvedRow(
  rows: Pick<SolvedRows, 'rank' | 'stride'>,
  row: number,
  outputs: { readonly factors: Float32Array; readonly half?: Uint32Array; readonly bias?: Float32Array },
): SolvedRow {
  const { rank, stride } = rows;
  const found = outputs.factors.subarray(row * stride, (row + 1) * stride);
  const x = Float64Array.from([...found.subarray(0, rank), ...(outputs.bias ? [outputs.bias[row]] : [])]);
  let wrong = found.subarray(rank).every((value) => value === 0) ? 0 : Infinity;
  if (outputs.half) {
    const { half } = outputs;
    for (let k = 0; k < stride; k++) {
      const bits = (half[(row * stride + k) >> 1] >>> (16 * (k & 1))) & 0xffff;
      if (!isHalfOf(bits, found[k])) wrong = Infinity;
    }
  }
  return { x, wrong };
}

/** True when the rows after the solved ones are unchanged. */
export function otherRowsKept(
  { count, stride }: Pick<SolvedRows, 'count' | 'stride'>,
  factors: Float32Array,
): boolean {
  return factors.subarray(count * stride).every((value) => value === STALE);
}

/** True if a float16 number is next to the value: adapters may round to nearest or towards zero. */
function isHalfOf(bits: number, value: number): boolean {
  return Math.abs(fromHalf(bits) - value) <= Math.max(Math.abs(value) * 2 ** -10, 2 ** -24);
}
