import { multiply } from '../../../cpu/reference/conjugate-gradient.ts';
import type { NormalEquations } from '../../../cpu/reference/normal-equations.ts';
import { strideOf } from '../../device/resources.ts';
import { EntryList } from '../../update/work.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { slotElements } from '../normal-equations/slots.ts';
import { halfValue } from './float16.ts';
import { randomNumbers } from './numbers.ts';
import { partEquations, ratedRows, readSlot, uploadAll, writeSlot } from './rated-rows.ts';

/** Content of slots beyond the rank, where the kernels that fill them may leave anything. */
const BEYOND = 1234;

/** Content of outputs before a kernel runs. */
const STALE = 3e7;

/** Rows of the output beyond the solved ones, which must stay as they are. */
const OTHER_ROWS = 2;

/** Starts and outputs of solved rows and of a few others. */
export interface RowData {
  /** A start for every row; with biases the bias's place holds 1. */
  readonly previous: Float32Array;
  readonly previousBias: Float32Array;
  readonly factors: Float32Array;
  readonly half: Uint32Array;
  readonly bias: Float32Array;
}

/** Random starts for `solved` rows and the others, and outputs with stale numbers. */
export function rowData(solved: number, rank: number, biases: boolean, random: () => number): RowData {
  const rows = solved + OTHER_ROWS;
  const stride = strideOf(rank);
  const previous = new Float32Array(rows * stride);
  for (let row = 0; row < rows; row++) for (let k = 0; k < rank; k++) previous[row * stride + k] = biases && k === rank - 1 ? 1 : random() - 0.5;
  return {
    previous,
    previousBias: Float32Array.from({ length: rows }, () => random() - 0.5),
    factors: new Float32Array(rows * stride).fill(STALE),
    half: new Uint32Array(((rows + 1) * stride) / 2).fill(0x7bff7bff),
    bias: new Float32Array(rows).fill(STALE),
  };
}

/** The buffers of starts and outputs, by the kernels' names for them. */
export function uploadRowData(gpu: Gpu, { previous, previousBias, ...outputs }: RowData): Promise<Record<string, GPUBuffer>> {
  return uploadAll(gpu, { previous, previous_bias: previousBias, factors: outputs.factors, half: outputs.half, bias: outputs.bias });
}

/** The outputs that kernels wrote. */
export async function downloadOutputs(gpu: Gpu, buffers: Readonly<Record<string, GPUBuffer>>, { factors, half, bias }: RowData): Promise<Pick<RowData, 'factors' | 'half' | 'bias'>> {
  const outputs = { factors: new Float32Array(factors.length), half: new Uint32Array(half.length), bias: new Float32Array(bias.length) };
  for (const [name, output] of Object.entries(outputs)) await gpu.download(buffers[name], output);
  return outputs;
}

/** Rows to be solved, some of them in several slots, and their outputs. */
export interface SolvedRows extends RowData {
  readonly rank: number;
  readonly stride: number;
  readonly lambda: number;
  /** Entries: row, first slot, n, slots. */
  readonly work: Uint32Array;
  readonly count: number;
  readonly slots: Float32Array;
}

/** Rows of the given lengths. The first has three slots, one without ratings names the last row's slot, and row numbers descend. */
export function rowsToSolve(rank: number, biases: boolean, lengths: readonly number[]): SolvedRows {
  const rated = ratedRows({ rank, lengths, biases, precision: 'f32' });
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
  const elements = slotElements(rank);
  const slots = new Float32Array(elements * parts.length).fill(BEYOND);
  parts.forEach((part, slot) => writeSlot(slots.subarray(slot * elements, (slot + 1) * elements), part));
  return { rank, stride, lambda: 0.05, work: work.list.entries, count: work.count, slots, ...rowData(lengths.length, rank, biases, random) };
}

/** A with λ n, and b, from the float32 of a row's slots; `round` is applied to A / n first. */
export function equationsOf(rows: SolvedRows, entry: number, round?: (value: number) => number): NormalEquations {
  const [, first, ratings, cuts] = rows.work.subarray(4 * entry, 4 * entry + 4);
  const elements = slotElements(rows.rank);
  const matrix = new Float64Array(rows.rank ** 2);
  const bias = new Float64Array(rows.rank);
  for (let slot = first; slot < first + cuts; slot++) {
    const part = readSlot(rows.slots.subarray(slot * elements, (slot + 1) * elements), rows.rank);
    part.matrix.forEach((value, i) => (matrix[i] += value));
    part.bias.forEach((value, i) => (bias[i] += value));
  }
  const n = Math.max(1, ratings);
  if (round) for (let i = 0; i < matrix.length; i++) matrix[i] = round(matrix[i] / n) * n;
  for (let i = 0; i < rows.rank; i++) matrix[i * rows.rank + i] += Math.fround(rows.lambda) * n;
  return { matrix, bias };
}

/** ‖A x - b‖ / ‖b‖ */
export function relativeResidual({ matrix, bias }: NormalEquations, x: Float64Array): number {
  const product = multiply(matrix, x);
  return Math.hypot(...product.map((value, i) => value - bias[i])) / (Math.hypot(...bias) || 1);
}

export interface SolvedRow {
  readonly x: Float64Array;
  /** Infinity when padding, the 1 of biases or the mirror's rounding is wrong, else 0. */
  readonly wrong: number;
}

/** A row of the outputs, with the bias back in its place. */
export function solvedRow(rows: Pick<SolvedRows, 'rank' | 'stride'>, row: number, outputs: { readonly factors: Float32Array; readonly half?: Uint32Array; readonly bias?: Float32Array }): SolvedRow {
  const { rank, stride } = rows;
  const found = outputs.factors.subarray(row * stride, (row + 1) * stride);
  const x = Float64Array.from(found.subarray(0, rank));
  let wrong = found.subarray(rank).every((value) => value === 0) ? 0 : Infinity;
  if (outputs.half) {
    const { half } = outputs;
    for (let k = 0; k < stride; k++) {
      const bits = (half[(row * stride + k) >> 1] >>> (16 * (k & 1))) & 0xffff;
      if (!isHalfOf(bits, found[k])) wrong = Infinity;
    }
  }
  if (outputs.bias) {
    if (x[rank - 1] !== 1) wrong = Infinity;
    x[rank - 1] = outputs.bias[row];
  }
  return { x, wrong };
}

/** True when the rows beyond the solved ones are unchanged. */
export function otherRowsKept({ count, stride }: Pick<SolvedRows, 'count' | 'stride'>, factors: Float32Array): boolean {
  return factors.subarray(count * stride).every((value) => value === STALE);
}

/** True when the half is a neighbour of the value: adapters may round to nearest or towards zero. */
function isHalfOf(bits: number, value: number): boolean {
  return Math.abs(halfValue(bits) - value) <= Math.max(Math.abs(value) * 2 ** -10, 2 ** -24);
}
