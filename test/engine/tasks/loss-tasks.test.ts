import { describe, expect, it } from 'vitest';
import { biasSums, predictPair, weightedNorm, type Block } from '../../../cpu/reference/errors.ts';
import { ratingBlock } from '../../cpu/scope.ts';
import { deviceKinds } from '../../support/devices/device-kinds.ts';
import { COLUMNS, lengths, matrix, vector, taskRunner } from './task-runner.ts';

describe.each(deviceKinds)('sums and predictions on a $kind device', (kind) => {
  const runner = taskRunner(kind);
  const { skip } = kind;

  it.skipIf(skip)('sums biases beside norms, and along the totals of the rows', async () => {
    const [x, bias, totals] = [
      matrix(lengths.length, 3, 1),
      vector('bias', lengths.length, 5),
      vector('row-totals', lengths.length, 6),
    ];
    const block = ratingBlock(lengths, COLUMNS, 3);
    const { offsets } = block.columns as unknown as Block;
    const [biasValues, totalValues] = [bias, totals].map(({ columns }) => columns.values as Float32Array);
    for (const [from, to] of [
      [0, lengths.length],
      [3, 7],
      [8, 9],
      [0, 1],
      [0, 0],
    ]) {
      const twin = biasSums(biasValues, totalValues, offsets, from, to);
      const norms = weightedNorm(x.columns.values as Float32Array, 3, offsets, from, to);
      for (const along of [true, false]) {
        const { values } = await runner.run(
          'weighted-norm',
          { from, to, rank: 3 },
          { block, factors: x, bias, ...(along ? { totals } : {}) },
        );
        for (const [name, expected] of Object.entries({
          ...norms,
          ...twin,
          ...(along ? {} : { biasAlong: 0 }),
        }))
          expect(Math.abs((values[name] as number) - expected)).toBeLessThanOrEqual(
            1e-5 * Math.abs(expected),
          );
      }
    }
  });

  it.skipIf(skip)('sums errors with biases,  of rows and columns', async () => {
    const rank = 9;
    const [x, theta] = [matrix(lengths.length, rank, 1), matrix(COLUMNS, rank, 2)];
    const [rowBias, columnBias] = [vector('bias', lengths.length, 5), vector('bias', COLUMNS, 6)];
    const block = ratingBlock(lengths, COLUMNS, 3);
    const { offsets, indices, values: ratings } = block.columns as unknown as Block;
    let squared = 0;
    for (let row = 0; row < lengths.length; row++) {
      for (let k = offsets[row]; k < offsets[row + 1]; k++) {
        const product = predictPair(
          x.columns.values as Float32Array,
          row,
          theta.columns.values as Float32Array,
          indices[k],
          rank,
        );
        squared +=
          (ratings[k] -
            (0.25 +
              (rowBias.columns.values[row] as number) +
              (columnBias.columns.values[indices[k]] as number) +
              product)) **
          2;
      }
    }
    const { values } = await runner.run(
      'squared-error',
      { from: 0, to: lengths.length, rank, mean: 0.25 },
      { block, rowFactors: x, columnFactors: theta, rowBias, columnBias },
    );
    expect(Math.abs((values.squared as number) - squared)).toBeLessThanOrEqual(1e-5 * squared);
  });
});
