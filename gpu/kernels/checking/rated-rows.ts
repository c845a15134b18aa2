import { type NormalEquations, normalEquations, type RatedColumns } from '../../../cpu/reference/normal-equations.ts';
import { strideOf } from '../../device/resources.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { HostBytes } from '../../webgpu/staging.ts';
import { slotElements, TILE, tilesOf } from '../normal-equations/slots.ts';
import { halfMirror, roundToHalf } from './float16.ts';
import { randomNumbers } from './numbers.ts';

/** A random fixed side, and random rows of ratings of given lengths. */
export interface RatedRows {
  readonly rank: number;
  readonly stride: number;
  readonly columns: number;
  /** θ: columns x stride, padding 0; rounded to float16 if kernels gather that. With biases the last feature is 1. */
  readonly theta: Float32Array;
  readonly mirror: Uint32Array;
  readonly offsets: Int32Array;
  /** Columns, ascending within a row as in blocks; a column may occur twice. */
  readonly indices: Uint32Array;
  /** Ratings. Like mean and biases they are multiples of 1/64, so that float16 holds them and their differences exactly. */
  readonly values: Float32Array;
  readonly mean: number;
  readonly fixedBias: Float32Array;
  /** A row's ratings, or a part of them, less mean and biases. */
  part(first: number, count: number): RatedColumns;
}

export interface RatedRowsOptions {
  readonly rank: number;
  readonly lengths: readonly number[];
  readonly biases: boolean;
  readonly precision: 'f32' | 'f16';
  readonly columns?: number;
}

export function ratedRows({ rank, lengths, biases, precision, columns = Math.max(300, ...lengths) }: RatedRowsOptions): RatedRows {
  const random = randomNumbers(rank + lengths.length);
  const stride = strideOf(rank);
  const round = precision === 'f16' ? roundToHalf : Math.fround;
  const theta = new Float32Array(columns * stride);
  for (let column = 0; column < columns; column++) {
    for (let k = 0; k < rank; k++) theta[column * stride + k] = biases && k === rank - 1 ? 1 : round((2 * random() - 0.7) / Math.sqrt(rank));
  }
  const offsets = Int32Array.from([0, ...lengths]);
  for (let i = 1; i < offsets.length; i++) offsets[i] += offsets[i - 1];
  const ratings = offsets[lengths.length];
  const indices = Uint32Array.from({ length: Math.max(1, ratings) }, () => Math.floor(random() * columns));
  for (let row = 0; row < lengths.length; row++) indices.subarray(offsets[row], offsets[row + 1]).sort();
  const values = Float32Array.from({ length: Math.max(1, ratings) }, () => 1 + Math.floor(256 * random()) / 64);
  const fixedBias = Float32Array.from({ length: columns }, () => Math.floor(64 * random()) / 64 - 0.5);
  const mean = 3.125;
  const part = (first: number, count: number) => ({
    indices: indices.subarray(first, first + count),
    values: Float64Array.from(values.subarray(first, first + count), (value, k) => (biases ? value - mean - fixedBias[indices[first + k]] : value)),
  });
  return { rank, stride, columns, theta, mirror: halfMirror(theta, stride), offsets, indices, values, mean, fixedBias, part };
}

/** The buffers that kernels read, by the kernels' names for them. */
export async function ratedBuffers(gpu: Gpu, { indices, values, mirror, theta, fixedBias }: RatedRows, precision: 'f32' | 'f16'): Promise<Record<string, GPUBuffer>> {
  return uploadAll(gpu, { indices, values, fixed: precision === 'f16' ? mirror : theta, fixed_bias: fixedBias });
}

/** A buffer for each content, by the same names. */
export async function uploadAll(gpu: Gpu, contents: Readonly<Record<string, HostBytes>>): Promise<Record<string, GPUBuffer>> {
  const buffers: Record<string, GPUBuffer> = {};
  for (const [name, content] of Object.entries(contents)) buffers[name] = await gpu.bufferOf(content, name);
  return buffers;
}

/** The twin's equations of a part: A without λ, and b. */
export function partEquations(rows: RatedRows, first: number, count: number): NormalEquations {
  return normalEquations(rows.theta, rows.stride, rows.rank, rows.part(first, count), 0);
}

/** Puts normal equations into a slot (gpu/kernels/normal-equations/slots.ts). */
export function writeSlot(slot: Float32Array, { matrix, bias }: NormalEquations): void {
  eachSlotElement(bias.length, (at, i, j) => (slot[at] = matrix[i * bias.length + j]));
  slot.set(bias, slotElements(bias.length) - tilesOf(bias.length) * TILE);
}

/** The normal equations in a slot, from its lower tiles. */
export function readSlot(slot: Float32Array, rank: number): NormalEquations {
  const matrix = new Float64Array(rank * rank);
  eachSlotElement(rank, (at, i, j) => {
    matrix[i * rank + j] = slot[at];
    if (Math.floor(i / TILE) !== Math.floor(j / TILE)) matrix[j * rank + i] = slot[at];
  });
  const first = slotElements(rank) - tilesOf(rank) * TILE;
  return { matrix, bias: Float64Array.from(slot.subarray(first, first + rank)) };
}

/** Calls `visit` for every element of A in a slot, with its place there, its row and its column. */
export function eachSlotElement(rank: number, visit: (at: number, i: number, j: number) => void): void {
  for (let i = 0; i < rank; i++) {
    const above = Math.floor(i / TILE);
    for (let j = 0; j < Math.min(rank, (above + 1) * TILE); j++) {
      const tile = (above * (above + 1)) / 2 + Math.floor(j / TILE);
      visit(tile * TILE * TILE + (i % TILE) * TILE + (j % TILE), i, j);
    }
  }
}
