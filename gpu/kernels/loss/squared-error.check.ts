/** squared-error, weighted-norm and predict against their float64 twins. */
import { errors, predictPair, weightedNorm as weightedNormTwin } from '../../../cpu/reference/errors.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { predict } from '../../tasks/predict.ts';
import { squaredError } from '../../tasks/squared-error.ts';
import { weightedNorm } from '../../tasks/weighted-norm.ts';
import type { KernelCheck } from '../checking/check.ts';
import { type HostMatrix, randomBlock, randomMatrix, runHandler } from '../checking/task-scope.ts';

const RANKS = [1, 7, 10, 32, 63, 64, 100, 128, 200];

/** Rows without ratings at both ends and in between, rows shorter than a team's four, one that many workgroups share. */
const LENGTHS = [0, 1, 2, 0, 0, 3, 4, 5, 1, 1, 1, 1, 1, 1, 63, 64, 65, 2, 1000, 1023, 1024, 1025, 0, 10_000, 7, 0];

/** Ranges that start and end anywhere inside a group of four ratings, and without any. */
const RANGES = [[0, 26], [0, 1], [3, 5], [1, 2], [2, 9], [8, 18], [22, 24], [23, 24], [24, 26]] as const;

const COLUMNS = 300;
/** Sums of float32 errors of rounded products, each about 1e-7 of the product, in both directions. */
const LIMIT = 2e-6;

function squaredErrorCheck(rank: number, biased: boolean): KernelCheck {
  return {
    name: 'squared-error',
    variant: `rank ${rank}${biased ? ', biases' : ''}`,
    run: async (gpu) => {
      const features = biased ? rank + 1 : rank;
      const block = randomBlock(LENGTHS, COLUMNS, rank);
      const [rowFactors, columnFactors] = [randomMatrix(LENGTHS.length, features, 1), randomMatrix(COLUMNS, features, 2)];
      const random = new CounterRandom(3);
      const [rowBias, columnBias] = [LENGTHS.length, COLUMNS].map((count, side) => Float32Array.from({ length: count }, (_, k) => random.uniform(side * COLUMNS + k) - 0.5));
      const mean = 2.75;
      if (biased) for (const matrix of [rowFactors, columnFactors]) setLast(matrix);
      let error = 0;
      for (const [from, to] of RANGES) {
        const params = { from, to, rank: features, ...(biased ? { mean } : {}) };
        const { values } = await runHandler(gpu, squaredError, params, {
          matrices: { rowFactors, columnFactors },
          blocks: { block },
          vectors: biased ? { rowBias, columnBias } : {},
        });
        const twin = biased ? biasedErrors() : errors(rowFactors.values, columnFactors.values, rowFactors.stride, block, from, to);
        for (const name of ['squared', 'absolute', 'count'] as const) error = worse(error, relative(values?.[name] as number, twin[name]));

        function biasedErrors() {
          const sums = { squared: 0, absolute: 0, count: 0 };
          for (let row = from; row < to; row++) {
            for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
              const column = block.indices[k];
              const product = predictPair(rowFactors.values, row, columnFactors.values, column, rowFactors.stride) - 1;
              const e = block.values[k] - (mean + rowBias[row] + columnBias[column] + product);
              sums.squared += e * e;
              sums.absolute += Math.abs(e);
              sums.count++;
            }
          }
          return sums;
        }
      }
      return { error, limit: LIMIT };
    },
  };
}

function weightedNormCheck(rank: number): KernelCheck {
  return {
    name: 'weighted-norm',
    variant: `rank ${rank}`,
    run: async (gpu) => {
      const lengths = Array.from({ length: 300 }, (_, row) => LENGTHS[row % LENGTHS.length]);
      const block = randomBlock(lengths, COLUMNS, rank);
      const factors = randomMatrix(lengths.length, rank, 4);
      let error = 0;
      for (const [from, to] of [[0, 300], [0, 1], [5, 5], [63, 129], [299, 300]]) {
        const { values } = await runHandler(gpu, weightedNorm, { from, to, rank }, { matrices: { factors }, blocks: { block } });
        error = worse(error, relative(values?.sum as number, weightedNormTwin(factors.values, factors.stride, block.offsets, from, to)));
      }
      return { error, limit: LIMIT };
    },
  };
}

function predictCheck(rank: number): KernelCheck {
  return {
    name: 'predict',
    variant: `rank ${rank}`,
    run: async (gpu) => {
      const [rowFactors, columnFactors] = [randomMatrix(50, rank, 5), randomMatrix(COLUMNS, rank, 6)];
      let error = 0;
      for (const count of [0, 1, 3, 64, 257]) error = worse(error, await predictionError(gpu, rank, rowFactors, columnFactors, count));
      return { error, limit: LIMIT };
    },
  };
}

async function predictionError(gpu: Gpu, rank: number, rowFactors: HostMatrix, columnFactors: HostMatrix, count: number): Promise<number> {
  const random = new CounterRandom(count);
  const [rows, columns] = [sharedArray(Uint32Array, count), sharedArray(Uint32Array, count)];
  for (let k = 0; k < count; k++) {
    rows[k] = random.below(2 * k, rowFactors.rows);
    columns[k] = random.below(2 * k + 1, columnFactors.rows);
  }
  const pairs: Partition = { layout: 'pairs', rows: count, columns: { rows, columns } };
  const { partitions } = await runHandler(gpu, predict, { rank }, { matrices: { rowFactors, columnFactors }, partitions: { pairs } });
  const values = partitions!.predictions.columns.values as Float32Array;
  if (values.length !== count) return Infinity;
  let error = 0;
  for (let k = 0; k < count; k++) error = worse(error, Math.abs(values[k] - predictPair(rowFactors.values, rows[k], columnFactors.values, columns[k], rowFactors.stride)));
  return error;
}

/** The feature whose product the biases replace. */
function setLast({ rows, columns, stride, values }: HostMatrix): void {
  for (let row = 0; row < rows; row++) values[row * stride + columns - 1] = 1;
}

function relative(value: number, twin: number): number {
  return Math.abs(value - twin) / (Math.abs(twin) || 1);
}

/** The larger one, where NaN is larger than all. */
function worse(left: number, right: number): number {
  return left >= right ? left : right;
}

export const lossChecks: readonly KernelCheck[] = RANKS.flatMap((rank) => [
  squaredErrorCheck(rank, false),
  squaredErrorCheck(rank, true),
  weightedNormCheck(rank),
  predictCheck(rank),
]);
