import { errors, predictPair } from '../../../cpu/reference/errors.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { squaredError } from '../../loss/squared-error.task.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { PRODUCT_LIMIT } from '../support/limits.ts';
import { relative, worse } from '../support/numbers.ts';
import { mirrored, randomBlock, randomMatrix, runHandler } from '../support/task-scope.ts';

/**
 * Row lengths that cover: rows without ratings at both ends and in between, rows with fewer ratings than the
 * four that a team of threads takes at once, and one row that many workgroups share.
 */
export const LENGTHS = [
  0, 1, 2, 0, 0, 3, 4, 5, 1, 1, 1, 1, 1, 1, 63, 64, 65, 2, 1000, 1023, 1024, 1025, 0, 10_000, 7, 0,
];

/**
 * Ranges of rows that start and end at every offset within a group of four ratings, and one range without
 * ratings.
 */
const RANGES = [
  [0, 26],
  [0, 1],
  [3, 5],
  [1, 2],
  [2, 9],
  [8, 18],
  [22, 24],
  [23, 24],
  [24, 26],
] as const;

const COLUMNS = 300;

function squaredErrorCheck(rank: number, biased: boolean, half: boolean): KernelCheck {
  return {
    name: 'squared-error',
    variant: `rank ${rank}${biased ? ', biases' : ''}${half ? ', columns in float16' : ''}`,
    run: async (gpu) => {
      const block = randomBlock(LENGTHS, COLUMNS, rank);
      const [rowFactors, exact] = [randomMatrix(LENGTHS.length, rank, 1), randomMatrix(COLUMNS, rank, 2)];
      const columnFactors = half ? mirrored(exact) : exact;
      const random = new CounterRandom(3);
      const [rowBias, columnBias] = [LENGTHS.length, COLUMNS].map((count, side) =>
        Float32Array.from({ length: count }, (_, k) => random.uniform(side * COLUMNS + k) - 0.5),
      );
      const mean = 2.75;
      let error = 0;
      for (const [from, to] of RANGES) {
        const params = { from, to, rank, ...(biased ? { mean } : {}) };
        const { values } = await runHandler(gpu, squaredError, params, {
          matrices: { rowFactors, columnFactors },
          blocks: { block },
          vectors: biased ? { rowBias, columnBias } : {},
        });
        const twin = biased
          ? biasedErrors()
          : errors(rowFactors.values, columnFactors.values, rowFactors.stride, block, from, to);
        for (const name of ['squared', 'absolute', 'count'] as const)
          error = worse(error, relative(values?.[name] as number, twin[name]));

        function biasedErrors() {
          const sums = { squared: 0, absolute: 0, count: 0 };
          for (let row = from; row < to; row++) {
            for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
              const column = block.indices[k];
              const product = predictPair(
                rowFactors.values,
                row,
                columnFactors.values,
                column,
                rowFactors.stride,
              );
              const e = block.values[k] - (mean + rowBias[row] + columnBias[column] + product);
              sums.squared += e * e;
              sums.absolute += Math.abs(e);
              sums.count++;
            }
          }
          return sums;
        }
      }
      return { error, limit: PRODUCT_LIMIT };
    },
  };
}

export const squaredErrorChecks: readonly KernelCheck[] = CHECKED_RANKS.flatMap((rank) =>
  [false, true].flatMap((biased) => [false, true].map((half) => squaredErrorCheck(rank, biased, half))),
);
