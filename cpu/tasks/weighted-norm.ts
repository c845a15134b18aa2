import { blockOf, type TaskHandler, valuesOf } from '../handler.ts';
import { priorsOf } from './row-chunks.ts';
import { ratingPower } from './solvers.ts';
import type { BiasSums } from '../../operators/tasks/task-types.ts';

const CHUNK_ROWS = 65_536;

/**
 * See `weighted-norm` of KernelTasks. Only the offsets of the block are read. They have 32 bits and may wrap
 * around, so only their differences are used.
 */
export const weightedNorm: TaskHandler<'weighted-norm'> = (scope) => {
  const { from, to, exponent = 1, plainWeights } = scope.params;
  const shifts = valuesOf(scope, 'shifts');
  const offsets = scope.hasInput('block') ? blockOf(scope).offsets : undefined;
  const weightOf = (row: number) =>
    offsets ? ratingPower((offsets[row + 1] - offsets[row]) | 0, exponent) : (shifts?.[row] ?? 1);
  const factors = scope.matrix('factors');
  const { of: priorOf, biases } = priorsOf(scope);
  const size = factors.stride * 4;
  const sums = scope.scratch;
  const weightsAt = sums + 64;
  const { buffer } = scope.memory;
  const sumsView = new Float64Array(buffer, sums, 2).fill(0);
  const weights = new Float64Array(buffer, weightsAt, CHUNK_ROWS);
  for (let row = from; row < to && !scope.cancelled(); row += CHUNK_ROWS) {
    const end = Math.min(row + CHUNK_ROWS, to);
    for (let r = row; r < end; r++) weights[r - row] = weightOf(r);
    const at = factors.pointer + row * size;
    scope.kernels.addWeightedNorms(at, priorOf(row), size, weightsAt, end - row, sums);
  }
  const plain =
    plainWeights === undefined || offsets === undefined
      ? sumsView[1]
      : weightedFeatures(
          new Float32Array(buffer, factors.pointer, to * factors.stride),
          factors.stride,
          offsets,
          from,
          to,
          plainWeights,
        );
  const bias = valuesOf(scope, 'bias');
  return {
    rows: to - from,
    bytesUp: 4 * (to - from),
    values: {
      sum: sumsView[0],
      plain,
      ...(bias && offsets && biasSums(bias, biases, valuesOf(scope, 'totals'), offsets, from, to)),
    },
  };
};

function biasSums(
  bias: Float32Array,
  priors: Float32Array | undefined,
  totals: Float32Array | undefined,
  offsets: Int32Array,
  from: number,
  to: number,
): BiasSums {
  let [biasSum, biasPlain, biasAlong, biasSquares] = [0, 0, 0, 0];
  for (let row = from; row < to; row++) {
    const count = (offsets[row + 1] - offsets[row]) | 0;
    if (count === 0) continue;
    const apart = bias[row] - (priors?.[row] ?? 0);
    const square = apart * apart;
    biasSum += count * square;
    biasPlain += square;
    biasSquares += count * bias[row] * bias[row];
    if (totals !== undefined) biasAlong += totals[row] * bias[row];
  }
  return { biasSum, biasPlain, biasAlong, ...(priors && { biasSquares }) };
}

function weightedFeatures(
  factors: Float32Array,
  stride: number,
  offsets: Int32Array,
  from: number,
  to: number,
  [first, second, others]: readonly [number, number, number],
): number {
  let sum = 0;
  for (let row = from; row < to; row++) {
    if (offsets[row + 1] === offsets[row]) continue;
    const at = row * stride;
    let norm = first * factors[at] ** 2 + second * factors[at + 1] ** 2;
    for (let k = at + 2; k < at + stride; k++) norm += others * factors[k] * factors[k];
    sum += norm;
  }
  return sum;
}
