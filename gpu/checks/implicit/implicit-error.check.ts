import { predictPair } from '../../../cpu/reference/errors.ts';
import { weightsOf } from '../../../cpu/reference/implicit.ts';
import { implicitError } from '../../implicit/implicit-error.task.ts';
import { weightedNorm } from '../../loss/weighted-norm.task.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { PRODUCT_LIMIT } from '../support/limits.ts';
import { relative, worse } from '../support/numbers.ts';
import { randomBlock, randomMatrix, runHandler } from '../support/task-scope.ts';
import { LENGTHS } from '../loss/squared-error.check.ts';

const ranges = [
  [0, 300],
  [0, 1],
  [5, 5],
  [63, 129],
  [299, 300],
] as const;
const weights = { alpha: 2.5, base: 1 };

/** Checks of the two sums that make up the loss of implicit data: the error, and the norm of the factors. */
export const implicitLossChecks: readonly KernelCheck[] = CHECKED_RANKS.flatMap((rank) => [
  errorCheck(rank),
  normCheck(rank),
]);

function errorCheck(rank: number): KernelCheck {
  return {
    name: 'implicit-error',
    variant: `rank ${rank}`,
    run: async (gpu) => {
      const block = randomBlock(
        Array.from({ length: 300 }, (_, row) => LENGTHS[row % LENGTHS.length]),
        200,
        rank,
      );
      for (let k = 0; k < block.values.length; k += 4) block.values[k] = -block.values[k];
      const [rowFactors, columnFactors] = [randomMatrix(300, rank, 1), randomMatrix(200, rank, 2)];
      let error = 0;
      for (const [from, to] of ranges) {
        const { values } = await runHandler(
          gpu,
          implicitError,
          { from, to, rank, ...weights },
          { matrices: { rowFactors, columnFactors }, blocks: { block } },
        );
        let sum = 0;
        for (let row = from; row < to; row++) {
          for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
            const s = predictPair(
              rowFactors.values,
              row,
              columnFactors.values,
              block.indices[k],
              rowFactors.stride,
            );
            const p = block.values[k] > 0 ? 1 : 0;
            sum += weightsOf(block.values[k], weights).weight * (p - s) ** 2 + weights.base * p * (1 - 2 * s);
          }
        }
        error = worse(error, relative(values?.sum as number, sum));
      }
      return { error, limit: 2 * PRODUCT_LIMIT };
    },
  };
}

function normCheck(rank: number): KernelCheck {
  return {
    name: 'weighted-norm',
    variant: `rank ${rank}, shifts`,
    run: async (gpu) => {
      const factors = randomMatrix(300, rank, 4);
      const shifts = Float32Array.from({ length: 300 }, (_, row) => 0.1 * (row % 17));
      let error = 0;
      for (const [from, to] of ranges) {
        const { values } = await runHandler(
          gpu,
          weightedNorm,
          { from, to, rank },
          { matrices: { factors }, vectors: { shifts } },
        );
        let sum = 0;
        for (let at = from * factors.stride; at < to * factors.stride; at++)
          sum += shifts[Math.floor(at / factors.stride)] * factors.values[at] ** 2;
        error = worse(error, relative(values?.sum as number, sum));
      }
      return { error, limit: PRODUCT_LIMIT };
    },
  };
}
