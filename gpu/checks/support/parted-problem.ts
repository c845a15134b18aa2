/** Test problems in which each device has a range of the rows of θ (a vertical part). */
import { type CompressedRows, verticalParts } from '../../../cpu/reference/vertical-parts.ts';
import { destroyBuffers, type DeviceBlock, type DeviceMatrix } from '../../device/resources.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { halfMirror } from './float16.ts';
import type { RatedProblem } from './rated-problem.ts';
import { uploadAll } from './run-kernel.ts';

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
