import {
  type NormalEquations,
  normalEquations,
  type RatedColumns,
} from '../../../cpu/reference/normal-equations.ts';
import { conjugateGradient, multiply } from '../../../cpu/reference/solvers.ts';
import { biasedEquations, biasedGradients, shifted } from '../../../cpu/reference/update.ts';
import { fromHalf } from '../../../engine/numbers/half.ts';
import type { RowRegularization } from '../../../operators/tasks/task-types.ts';
import { strideOf } from '../../device/resources.ts';
import { matrixElements, paddedRank, TILE, slotElements } from '../../device/slots.ts';
import { int8Bytes } from '../../int8/int8-plan.ts';
import { EntryList } from '../../update/deal-rows.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { HostBytes } from '../../webgpu/staging.ts';
import { halfBits, roundToHalf, randomNumbers } from './check.ts';
import { uploadAll } from './run-kernel.ts';

/** Random fixed factors θ, and random rows of ratings of given lengths. */
export interface RatedRows {
  readonly rank: number;
  readonly biases: boolean;
  readonly stride: number;
  readonly columns: number;
  /** θ: columns x stride, padding 0. It is rounded to float16 if the kernels read that. */
  readonly theta: Float32Array;
  readonly mirror: Uint32Array;
  readonly offsets: Int32Array;
  /** Columns, ascending within a row as in blocks; a column may occur twice. */
  readonly indices: Uint32Array;
  /**
   * Ratings. Ratings, mean and biases are multiples of 1/64, so float16 holds them and their differences
   * exactly.
   */
  readonly values: Float32Array;
  readonly mean: number;
  readonly fixedBias: Float32Array;
  /** The ratings with mean and biases subtracted, for kernels that do not subtract them. */
  readonly centred: Float32Array;
  /** A row's centred ratings, or a part of them. */
  part(first: number, count: number): RatedColumns;
}

export interface RatedRowsOptions {
  readonly rank: number;
  readonly lengths: readonly number[];
  readonly biases: boolean;
  /** `int8`: 8-bit numbers times a power of two, which float16 also holds exactly. */
  readonly precision: 'f32' | 'f16' | 'int8';
  readonly columns?: number;
  /**
   * True: θ >= 0 with rows of about unit norm, like the initial factors of a training. With biases, CG then
   * converges within a few steps.
   */
  readonly level?: boolean;
}

export function ratedRows({
  rank,
  lengths,
  biases,
  precision,
  columns = Math.max(300, ...lengths),
  level = false,
}: RatedRowsOptions): RatedRows {
  const random = randomNumbers(rank + lengths.length);
  const stride = strideOf(rank);
  const round = { f32: Math.fround, f16: roundToHalf, int8: (value: number) => eighth(value, rank) }[
    precision
  ];
  const theta = new Float32Array(columns * stride);
  for (let column = 0; column < columns; column++) {
    for (let k = 0; k < rank; k++)
      theta[column * stride + k] = round((level ? 1.7 * random() : 2 * random() - 0.7) / Math.sqrt(rank));
  }
  // In the first row of θ every feature has the largest 8-bit number, so the scale of every column is exactly
  // the power of two.
  if (precision === 'int8') theta.fill(largestOf8(rank), 0, rank);
  const offsets = Int32Array.from([0, ...lengths]);
  for (let i = 1; i < offsets.length; i++) offsets[i] += offsets[i - 1];
  const ratings = offsets[lengths.length];
  const indices = Uint32Array.from({ length: Math.max(1, ratings) }, () => Math.floor(random() * columns));
  for (let row = 0; row < lengths.length; row++) indices.subarray(offsets[row], offsets[row + 1]).sort();
  const values = Float32Array.from(
    { length: Math.max(1, ratings) },
    () => 1 + Math.floor(256 * random()) / 64,
  );
  const fixedBias = Float32Array.from({ length: columns }, () => Math.floor(64 * random()) / 64 - 0.5);
  const mean = 3.125;
  // A rating that equals the mean plus its column's bias is changed by 1/64. Otherwise the solution of a row
  // with only that rating would be 0, and there would be nothing to compare.
  if (biases)
    values.forEach((value, k) => (values[k] += value === mean + fixedBias[indices[k]] ? 1 / 64 : 0));
  const centred = biases ? values.map((value, k) => value - mean - fixedBias[indices[k]]) : values;
  const part = (first: number, count: number) => ({
    indices: indices.subarray(first, first + count),
    values: centred.subarray(first, first + count),
  });
  return {
    rank,
    biases,
    stride,
    columns,
    theta,
    mirror: halfMirror(theta, stride),
    offsets,
    indices,
    values,
    mean,
    fixedBias,
    centred,
    part,
  };
}

/** The largest 8-bit number of θ, at least the largest element before rounding. */
function largestOf8(rank: number): number {
  return 127 * 2 ** -Math.floor(Math.log2((127 * Math.sqrt(rank)) / 1.7));
}

function eighth(value: number, rank: number): number {
  const unit = largestOf8(rank) / 127;
  return unit * Math.round(value / unit);
}

/**
 * The half mirror of a matrix (its float16 copy, DeviceMatrix.half): two numbers in each u32, the first in
 * the lower bits, and an additional last row of zeros.
 */
export function halfMirror(values: Float32Array, stride: number): Uint32Array {
  const words = new Uint32Array((values.length + stride) / 2);
  for (let i = 0; i < values.length; i += 2)
    words[i / 2] = halfBits(values[i]) | (halfBits(values[i + 1]) << 16);
  return words;
}

/**
 * Uploads the buffers that kernels read, by binding name. `raw`: ratings from which mean and biases are not
 * subtracted, for kernels that subtract them.
 */
export async function ratedBuffers(
  gpu: Gpu,
  rows: RatedRows,
  precision: 'f32' | 'f16' | 'int8',
  raw = false,
) {
  const { indices, values, centred, fixedBias, mirror, theta } = rows;
  const gathered = {
    f32: () => ({ fixed: theta }),
    f16: () => ({ fixed: mirror }),
    int8: () => mirrorOf8(rows),
  }[precision]();
  const contents: Readonly<Record<'indices' | 'values' | 'fixed_bias' | 'fixed', HostBytes>> = {
    indices,
    values: raw ? values : centred,
    fixed_bias: fixedBias,
    ...gathered,
  };
  return uploadAll(gpu, contents);
}

/**
 * θ in 8 bits as the kernel to-int8 rounds it, with padded rows and a last row of zeros; and the columns'
 * scales.
 */
function mirrorOf8({ theta, rank, stride, columns }: RatedRows): {
  readonly fixed: Uint32Array;
  readonly scales: Float32Array;
} {
  const unit = largestOf8(rank) / 127;
  const bytes = new Int8Array(int8Bytes(columns, rank));
  const pitch = bytes.length / (columns + 1);
  for (let column = 0; column < columns; column++)
    for (let k = 0; k < rank; k++) bytes[column * pitch + k] = theta[column * stride + k] / unit;
  return { fixed: new Uint32Array(bytes.buffer), scales: new Float32Array(stride).fill(unit, 0, rank) };
}

/**
 * The float64 equations of a part of a row: A without λ, and b. With biases the last feature is the row's
 * bias.
 */
export function partEquations(rows: RatedRows, first: number, count: number): NormalEquations {
  const part = rows.part(first, count);
  return rows.biases
    ? biasedEquations(rows.theta, rows.stride, rows.rank, part)
    : normalEquations(rows.theta, rows.stride, rows.rank, part, 0);
}

/** Writes normal equations to a slot (gpu/device/slots.ts). */
export function writeSlot(slot: Float32Array, rank: number, { matrix, bias }: NormalEquations): void {
  const features = bias.length;
  eachSlotElement(rank, (at, i, j) => (slot[at] = matrix[i * features + j]));
  const first = matrixElements(rank);
  slot.set(bias.subarray(0, rank), first);
  if (features === rank) return;
  slot.set(matrix.subarray(rank * features, rank * features + rank), first + paddedRank(rank));
  slot[first + 2 * paddedRank(rank)] = bias[rank];
}

/**
 * Reads normal equations from a slot (gpu/device/slots.ts), which has only the lower tiles of A. `count`: the
 * part's number of ratings, which a slot does not contain; needed with biases.
 */
export function readSlot(slot: Float32Array, rank: number, biases: boolean, count: number): NormalEquations {
  const features = rank + (biases ? 1 : 0);
  const matrix = new Float64Array(features * features);
  eachSlotElement(rank, (at, i, j) => {
    matrix[i * features + j] = slot[at];
    if (Math.floor(i / TILE) !== Math.floor(j / TILE)) matrix[j * features + i] = slot[at];
  });
  const first = matrixElements(rank);
  const bias = new Float64Array(features);
  bias.set(slot.subarray(first, first + rank));
  if (biases) {
    for (let i = 0; i < rank; i++)
      matrix[i * features + rank] = matrix[rank * features + i] = slot[first + paddedRank(rank) + i];
    bias[rank] = slot[first + 2 * paddedRank(rank)];
    matrix[features * features - 1] = count;
  }
  return { matrix, bias };
}

/**
 * Calls `visit` for every stored element of A in a slot, with its index in the slot, its row and its column.
 */
export function eachSlotElement(rank: number, visit: (at: number, i: number, j: number) => void): void {
  for (let i = 0; i < rank; i++) {
    const above = Math.floor(i / TILE);
    for (let j = 0; j < Math.min(rank, (above + 1) * TILE); j++) {
      const tile = (above * (above + 1)) / 2 + Math.floor(j / TILE);
      visit(tile * TILE * TILE + (i % TILE) * TILE + (j % TILE), i, j);
    }
  }
}

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

interface SolvedRow {
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
