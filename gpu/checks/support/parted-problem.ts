/**
 * Test problems in which each device has a range of the rows of θ (a vertical part), and problems of implicit
 * data.
 */
import { gramMatrix, implicitEquations } from '../../../cpu/reference/implicit.ts';
import type { NormalEquations } from '../../../cpu/reference/normal-equations.ts';
import { type CompressedRows, verticalParts } from '../../../cpu/reference/vertical-parts.ts';
import type { ImplicitWeights } from '../../../operators/tasks/tasks.ts';
import { destroyBuffers, type DeviceBlock, type DeviceMatrix } from '../../device/resources.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { halfMirror } from './float16.ts';
import { worse } from './numbers.ts';
import type { RatedProblem } from './rated-problem.ts';
import { uploadAll } from './rated-rows.ts';
import { downloadOutputs, solvedRow } from './solved-rows.ts';

/** Row lengths of such problems; the longest row is in the middle. */
export function lengthsTo(longest: number): number[] {
  return [1, 0, 64, 65, longest, 33, 32, 2, 700, 16, 7, 0, 130, 1];
}

/** One vertical part of a problem on a GPU: a range of rows of θ, and the ratings of these columns. */
export interface ProblemPart {
  readonly block: DeviceBlock;
  readonly fixed: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
}

export async function problemParts(
  gpu: Gpu,
  { ratings, biases }: RatedProblem,
  p: number,
): Promise<ProblemPart[]> {
  const { rank, stride, columns, theta, fixedBias } = ratings;
  const parts: ProblemPart[] = [];
  for (const { first, last, ...lists } of verticalParts(ratings, columns, p)) {
    const own = theta.slice(first * stride, last * stride);
    const { values, half, bias } = await uploadAll(gpu, {
      values: own,
      half: halfMirror(own, stride),
      bias: fixedBias.slice(first, last),
    });
    parts.push({
      block: await deviceBlock(gpu, lists),
      fixed: { rows: last - first, columns: rank, stride, values, half },
      ...(biases ? { fixedBias: bias } : {}),
    });
  }
  return parts;
}

async function deviceBlock(gpu: Gpu, { offsets, indices, values }: CompressedRows): Promise<DeviceBlock> {
  const buffers = await uploadAll(gpu, {
    rowPointers: offsets,
    indices: nonEmpty(indices),
    values: nonEmpty(values),
  });
  return {
    rows: offsets.length - 1,
    ratings: indices.length,
    offsets,
    columns: indices,
    ...buffers,
    prepared: new Map(),
  };
}

/** WebGPU has no empty bindings: a buffer has at least one number. */
function nonEmpty<Numbers extends Uint32Array | Float32Array>(numbers: Numbers): Numbers {
  return numbers.length > 0 ? numbers : new (numbers.constructor as new (length: number) => Numbers)(1);
}

export function destroyParts(parts: readonly ProblemPart[]): void {
  for (const { block, fixed, fixedBias } of parts) {
    const { rowPointers, indices, values } = block;
    destroyBuffers({ rowPointers, indices, values, fixed, fixedBias, lists: [...block.prepared.values()] });
  }
}

const GRAM_WEIGHT = 0.7;

/**
 * Additional inputs of a problem of implicit data: the weights of its ratings, the Gram matrix G of θ, and
 * the number that is added to the diagonal of each row's A.
 */
export class ImplicitTerms {
  readonly weights: ImplicitWeights = { alpha: 3, base: 1 };
  readonly #problem: RatedProblem;
  readonly #gram: Float64Array;
  readonly #shifts: Float32Array;

  constructor(problem: RatedProblem) {
    const { ratings, lengths } = problem;
    this.#problem = problem;
    this.#shifts = Float32Array.from(lengths, (_, row) => 0.5 + row);
    this.#gram = gramMatrix(ratings.theta, ratings.stride, ratings.rank, ratings.columns, GRAM_WEIGHT);
  }

  upload(gpu: Gpu): Promise<Record<'gram' | 'shifts', GPUBuffer>> {
    const { rank, stride } = this.#problem.ratings;
    const gram = new Float32Array(stride * stride);
    this.#gram.forEach((value, at) => (gram[Math.floor(at / rank) * stride + (at % rank)] = value));
    return uploadAll(gpu, { gram, shifts: this.#shifts });
  }

  /**
   * The largest error of the rows in `buffers`, by the given measure of one row; a row without ratings must
   * be 0.
   */
  async error(
    gpu: Gpu,
    buffers: Readonly<Record<string, GPUBuffer>>,
    half: boolean,
    errorOf: (x: Float64Array, equations: NormalEquations, row: number) => number,
  ): Promise<number> {
    const { ratings, lengths } = this.#problem;
    const outputs = await downloadOutputs(gpu, buffers, this.#problem);
    return lengths.reduce((error, length, row) => {
      const { x, wrong } = solvedRow(ratings, row, {
        factors: outputs.factors,
        half: half ? outputs.half : undefined,
      });
      const own = length === 0 ? Math.hypot(...x) : errorOf(x, this.#equations(row), row);
      return worse(error, worse(wrong, own));
    }, 0);
  }

  #equations(row: number): NormalEquations {
    const { ratings, lengths } = this.#problem;
    const { theta, stride, rank, offsets } = ratings;
    const part = ratings.part(offsets[row], lengths[row]);
    return implicitEquations(this.#gram, theta, stride, rank, part, this.weights, this.#shifts[row]);
  }
}
