import { biasSums, weightedNorm as weightedNormTwin } from '../../../cpu/reference/errors.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { weightedNorm } from '../../loss/weighted-norm.task.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { PRODUCT_LIMIT } from '../support/limits.ts';
import { relative, worse } from '../support/numbers.ts';
import { randomBlock, randomMatrix, runHandler } from '../support/task-scope.ts';
import { BIAS_ROWS } from '../../loss/bias-sums.ts';
import { LENGTHS } from './squared-error.check.ts';

/** Three workgroups add the biases of this number of rows; the last one has a single row. */
const BIASED_ROWS = 2 * BIAS_ROWS + 1;

export const weightedNormChecks: readonly KernelCheck[] = [
  ...CHECKED_RANKS.map(weightedNormCheck),
  biasSumsCheck(),
];

function weightedNormCheck(rank: number): KernelCheck {
  return {
    name: 'weighted-norm',
    variant: `rank ${rank}`,
    run: async (gpu) => {
      const lengths = Array.from({ length: 300 }, (_, row) => LENGTHS[row % LENGTHS.length]);
      const block = randomBlock(lengths, 300, rank);
      const factors = randomMatrix(lengths.length, rank, 4);
      let error = 0;
      for (const [from, to] of [
        [0, 300],
        [0, 1],
        [5, 5],
        [63, 129],
        [299, 300],
      ]) {
        for (const exponent of [1, 0.5]) {
          const { values } = await runHandler(
            gpu,
            weightedNorm,
            { from, to, rank, exponent },
            { matrices: { factors }, blocks: { block } },
          );
          const twin = weightedNormTwin(factors.values, factors.stride, block.offsets, from, to, exponent);
          for (const name of ['sum', 'plain'] as const)
            error = worse(error, relative(values?.[name] as number, twin[name]));
        }
      }
      return { error, limit: PRODUCT_LIMIT };
    },
  };
}

function biasSumsCheck(): KernelCheck {
  return {
    name: 'weighted-norm',
    variant: 'biases',
    run: async (gpu) => {
      const block = randomBlock(
        Array.from({ length: BIASED_ROWS }, (_, row) => row % 5),
        300,
        1,
      );
      const factors = randomMatrix(BIASED_ROWS, 2, 4);
      const random = new CounterRandom(5);
      // All terms of a total have the same sign: a sum in which terms cancel has no meaningful relative
      // error.
      const [bias, totals] = [0, 1].map((side) =>
        Float32Array.from({ length: BIASED_ROWS }, (_, k) => random.uniform(side * BIASED_ROWS + k)),
      );
      let error = 0;
      for (const [from, to] of [
        [0, BIASED_ROWS],
        [0, BIAS_ROWS],
        [1, BIAS_ROWS + 1],
        [BIASED_ROWS - 1, BIASED_ROWS],
        [7, 7],
      ]) {
        const { values } = await runHandler(
          gpu,
          weightedNorm,
          { from, to, rank: 2 },
          { matrices: { factors }, blocks: { block }, vectors: { bias, totals } },
        );
        const twin = {
          ...biasSums(bias, totals, block.offsets, from, to),
          ...weightedNormTwin(factors.values, factors.stride, block.offsets, from, to),
        };
        for (const name of ['sum', 'plain', 'biasSum', 'biasPlain', 'biasAlong'] as const)
          error = worse(error, relative(values?.[name] as number, twin[name]));
      }
      return { error, limit: PRODUCT_LIMIT };
    },
  };
}
