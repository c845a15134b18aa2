import { weightedNorm as weightedNormTwin } from '../../../cpu/reference/errors.ts';
import { weightedNorm } from '../../tasks/weighted-norm.ts';
import { CHECKED_RANKS, type KernelCheck } from '../checking/check.ts';
import { PRODUCT_LIMIT } from '../checking/limits.ts';
import { relative, worse } from '../checking/numbers.ts';
import { randomBlock, randomMatrix, runHandler } from '../checking/task-scope.ts';
import { LENGTHS } from './squared-error.check.ts';

export const weightedNormChecks: readonly KernelCheck[] = CHECKED_RANKS.map(weightedNormCheck);

function weightedNormCheck(rank: number): KernelCheck {
  return {
    name: 'weighted-norm',
    variant: `rank ${rank}`,
    run: async (gpu) => {
      const lengths = Array.from({ length: 300 }, (_, row) => LENGTHS[row % LENGTHS.length]);
      const block = randomBlock(lengths, 300, rank);
      const factors = randomMatrix(lengths.length, rank, 4);
      let error = 0;
      for (const [from, to] of [[0, 300], [0, 1], [5, 5], [63, 129], [299, 300]]) {
        for (const exponent of [1, 0.5]) {
          const { values } = await runHandler(gpu, weightedNorm, { from, to, rank, exponent }, { matrices: { factors }, blocks: { block } });
          const twin = weightedNormTwin(factors.values, factors.stride, block.offsets, from, to, exponent);
          for (const name of ['sum', 'plain'] as const) error = worse(error, relative(values?.[name] as number, twin[name]));
        }
      }
      return { error, limit: PRODUCT_LIMIT };
    },
  };
}
