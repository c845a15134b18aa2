import { conjugateGradient } from '../../../cpu/reference/conjugate-gradient.ts';
import { normalEquations } from '../../../cpu/reference/normal-equations.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { deviation, randomNumbers } from './numbers.ts';
import { ratedBuffers, type RatedRows, ratedRows, type RatedRowsOptions, uploadAll } from './rated-rows.ts';
import { relativeResidual, solvedRow, STALE } from './solved-rows.ts';

/** Rows beyond the solved ones, which must stay as they are. */
const OTHER_ROWS = 2;

/** Ratings of the longest row that kernels on tensor cores are checked with. */
export const LONGEST = 10_000;

/** Rows to be solved from their ratings, with a start. */
export interface RatedProblem {
  readonly ratings: RatedRows;
  readonly biases: boolean;
  readonly lengths: readonly number[];
  readonly lambda: number;
  /** A start for every row; with biases the bias's place holds 1. */
  readonly previous: Float32Array;
  readonly previousBias: Float32Array;
}

/** The method by which rows are solved. */
export interface Expectation {
  /** Steps of CG, compared with as many in float64; 0 for exact solutions, checked by the residual. */
  readonly steps: number;
  /** Longest row that is solved exactly even with CG; -1 for none. */
  readonly exactTo: number;
}

export function ratedProblem(options: RatedRowsOptions): RatedProblem {
  const { rank, lengths, biases } = options;
  const ratings = ratedRows(options);
  const random = randomNumbers(rank + 1);
  const rows = lengths.length + OTHER_ROWS;
  const previous = new Float32Array(rows * ratings.stride);
  for (let row = 0; row < rows; row++) for (let k = 0; k < rank; k++) previous[row * ratings.stride + k] = biases && k === rank - 1 ? 1 : random() - 0.5;
  return { ratings, biases, lengths, lambda: 0.05, previous, previousBias: Float32Array.from({ length: rows }, () => random() - 0.5) };
}

/** The buffers of a half-iteration, by the kernels' names for them, without lists of rows. */
export async function problemBuffers(gpu: Gpu, { ratings, lengths, previous, previousBias }: RatedProblem, precision: 'f32' | 'f16'): Promise<Record<string, GPUBuffer>> {
  const { stride } = ratings;
  const rows = lengths.length + OTHER_ROWS;
  const starts = { previous, previous_bias: previousBias };
  const outputs = { factors: new Float32Array(rows * stride).fill(STALE), half: new Uint32Array(((rows + 1) * stride) / 2).fill(0x7bff7bff), bias: new Float32Array(rows).fill(STALE) };
  return { ...(await ratedBuffers(gpu, ratings, precision)), ...(await uploadAll(gpu, { ...starts, ...outputs })) };
}

/** The largest error of the rows in `buffers`; Infinity when a property that must hold exactly is violated. */
export async function problemError(gpu: Gpu, problem: RatedProblem, buffers: Readonly<Record<string, GPUBuffer>>, half: boolean, expectation: Expectation): Promise<number> {
  const { ratings, lengths, biases } = problem;
  const { rank, stride } = ratings;
  const rows = lengths.length + OTHER_ROWS;
  const factors = new Float32Array(rows * stride);
  const mirror = new Uint32Array(((rows + 1) * stride) / 2);
  const bias = new Float32Array(rows);
  await gpu.download(buffers.factors, factors);
  await gpu.download(buffers.half, mirror);
  await gpu.download(buffers.bias, bias);
  if (!factors.subarray(lengths.length * stride).every((value) => value === STALE)) return Infinity;
  let error = 0;
  for (let row = 0; row < lengths.length; row++) {
    const { x, wrong } = solvedRow({ rank, stride }, row, { factors, half: half ? mirror : undefined, bias: biases ? bias : undefined });
    error = Math.max(error, wrong === 0 ? rowError(problem, row, x, expectation) : wrong);
  }
  return error;
}

function rowError({ ratings, biases, lengths, lambda, previous, previousBias }: RatedProblem, row: number, x: Float64Array, { steps, exactTo }: Expectation): number {
  const { rank, stride, theta, offsets } = ratings;
  if (lengths[row] === 0) return Math.hypot(...x);
  const equations = normalEquations(theta, stride, rank, ratings.part(offsets[row], lengths[row]), Math.fround(lambda));
  if (steps === 0 || lengths[row] <= exactTo) return relativeResidual(equations, x);
  const start = Float64Array.from(previous.subarray(row * stride, row * stride + rank));
  if (biases) start[rank - 1] = previousBias[row];
  return deviation(x, conjugateGradient(equations.matrix, equations.bias, start, steps));
}

/** Lengths around a bin and around the four bins of the ring; more rows than workgroups. */
export function lengthsAround(bin: number): number[] {
  return [LONGEST, 0, 5 * bin + 1, 4 * bin, 3 * bin - 1, bin + 1, bin, bin - 1, 17, 16, 15, 2, 1, 0, 1];
}
