import { biasedEquations } from '../../../cpu/reference/biased.ts';
import {
  type NormalEquations,
  normalEquations,
  type RatedColumns,
} from '../../../cpu/reference/normal-equations.ts';
import { strideOf } from '../../device/resources.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { HostBytes } from '../../webgpu/staging.ts';
import { int8Bytes } from '../../int8/int8-plan.ts';
import { matrixElements, paddedRank, TILE } from '../../device/slots.ts';
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
