/** Tasks that solve no rows: sums, scores, steps of SGD, copies. */
import { expect } from 'vitest';
import { drawRow } from '../../../../cpu/reference/draw.ts';
import { type Block, errors, predictPair, weightedNorm } from '../../../../cpu/reference/errors.ts';
import { gramMatrix, weightsOf } from '../../../../cpu/reference/normal-equations.ts';
import { shrinkInPlace, stepInOrder } from '../../../../cpu/reference/sgd.ts';
import { rankListed, topN } from '../../../../cpu/reference/top-n.ts';
import type { Partition } from '../../../../engine/partition.ts';
import { mix32 } from '../../../../engine/random.ts';
import { indexShapes } from '../../../../operators/serving/search.ts';
import { missingColumns, ratingBlock } from '../../../cpu/scope.ts';
import { numbers } from '../../../support/devices/device-parts.ts';
import { COLUMNS, type DeviceTasks, type RankCase, requireNear, valuesOf } from './rank-case.ts';

const lengths = [0, 1, 9, 70, 300];
const ROWS = lengths.length;
const whole = { from: 0, to: ROWS };
const WEIGHTS = { alpha: 2.5, base: 1 };
const block = ratingBlock(lengths, COLUMNS, 2);

const matrices = (rank: number) =>
  [numbers('factors', ROWS, rank, 1), numbers('factors', COLUMNS, rank, 2)] as const;

function putMatrices({ parts }: DeviceTasks, rank: number) {
  const [x, theta] = matrices(rank);
  return { rowFactors: parts.put('x', x), columnFactors: parts.put('theta', theta) };
}

/** Scores of a row, in float64. */
const scoresOf = (rank: number, row: number): number[] => {
  const [x, theta] = matrices(rank).map(valuesOf);
  return Array.from({ length: COLUMNS }, (_, column) => predictPair(x, row, theta, column, rank));
};

export const otherCases: readonly RankCase[] = [
  {
    name: 'sums of errors and norms',
    async check(tasks, rank) {
      const { parts } = tasks;
      const [x, theta] = matrices(rank).map(valuesOf);
      const given = { block: parts.put('block', block), ...putMatrices(tasks, rank) };
      const { values } = await parts.run('squared-error', { ...whole, rank }, given, {});
      const arrays = block.columns as unknown as Block;
      const twin = errors(x, theta, rank, arrays, 0, ROWS);
      requireNear([values.squared as number], [twin.squared], 1e-5, 'the sum of squares');
      const norms = await parts.run(
        'weighted-norm',
        { ...whole, rank },
        { block: given.block, factors: given.rowFactors },
        {},
      );
      const { sum } = weightedNorm(x, rank, arrays.offsets, 0, ROWS);
      requireNear([norms.values.sum as number], [sum], 1e-5, 'the norm');
      const implicit = await parts.run('implicit-error', { ...whole, rank, ...WEIGHTS }, given, {});
      requireNear([implicit.values.sum as number], [implicitError(rank)], 1e-4, 'the implicit error');
      parts.release();
    },
  },
  {
    name: 'the Gram matrix',
    async check(tasks, rank) {
      const { parts } = tasks;
      const [, theta] = matrices(rank);
      const gram = parts.allocate('gram', Math.ceil(rank / 16) * 16, rank);
      const factors = parts.put('theta', theta);
      await parts.run('gram', { from: 0, to: rank, rank, weight: 0.5 }, { factors }, { gram });
      const found = (await tasks.fetched(gram, rank)).subarray(0, rank * rank);
      requireNear(found, gramMatrix(valuesOf(theta), rank, rank, COLUMNS, 0.5), 1e-5, 'G');
      parts.release();
    },
  },
  {
    name: 'predictions, best columns and places',
    async check(tasks, rank) {
      const { parts } = tasks;
      const given = putMatrices(tasks, rank);
      const pairs: Partition = {
        layout: 'pairs',
        rows: COLUMNS,
        columns: {
          rows: new Uint32Array(COLUMNS).fill(3),
          columns: Uint32Array.from({ length: COLUMNS }, (_, column) => column),
        },
      };
      const made = { name: 'predictions', partition: 0, version: 0 };
      await parts.run(
        'predict',
        { rank },
        { pairs: parts.put('pairs', pairs), ...given },
        { predictions: made },
      );
      const scores = scoresOf(rank, 3);
      requireNear(await parts.fetched(made), scores, 1e-5, 'the predictions');
      const top = { name: 'top', partition: 0, version: 0 };
      await parts.run('top-n', { from: 3, to: 4, rank, n: 9 }, given, { top });
      const { items } = (await tasks.device.fetch(top)).columns;
      expect([...items]).toEqual(topN(scores, 9, new Set()));
      const listed = missingColumns(block, COLUMNS);
      const places = { name: 'places', partition: 0, version: 0 };
      const own = { listed: parts.put('listed', listed), exclude: parts.put('exclude', block) };
      await parts.run('rank-listed', { ...whole, rank }, { ...given, ...own }, { places });
      const expected = lengths.flatMap((_, row) => {
        const [indices, exclude] = [listed, block].map(({ columns }) =>
          (columns.indices as Uint32Array).subarray(
            columns.offsets[row] as number,
            columns.offsets[row + 1] as number,
          ),
        );
        return [...rankListed(scoresOf(rank, row), indices, new Set(exclude))];
      });
      expect([...(await tasks.device.fetch(places)).columns.values]).toEqual(expected);
      for (const ref of [made, top, places]) tasks.device.release(ref);
      parts.release();
    },
  },
  {
    name: 'steps of SGD',
    async check(tasks, rank) {
      const { parts } = tasks;
      const [x, theta] = matrices(rank);
      const count = 90;
      const list = {
        rows: Uint32Array.from({ length: count }, (_, k) => (7 * k) % ROWS),
        columns: Uint32Array.from({ length: count }, (_, k) => (11 * k) % COLUMNS),
        values: Float32Array.from({ length: count }, (_, k) => Math.sin(k)),
      };
      const steps = { rank, biases: false, rate: 0.05, rowLambda: 0.02, columnLambda: 0.03 };
      const [p, q] = [x, theta].map((of) => Float64Array.from(valuesOf(of)));
      stepInOrder(p, q, rank, list, steps);
      const shrink = { rate: 0.05, offset: 0.5, damping: 0 };
      shrinkInPlace(p, rank, shrink);
      const outputs = { rows: parts.put('x', x), columns: parts.put('theta', theta) };
      await parts.run(
        'sgd-block',
        { ...steps, adaptive: false, from: 0, to: 1, batch: count },
        {
          block: parts.put('list', { layout: 'rating-list', rows: count, columns: list }),
          order: parts.put('order', {
            layout: 'batch-order',
            rows: 1,
            columns: { order: new Uint32Array(1) },
          }),
        },
        outputs,
      );
      await parts.run('shrink-rows', { ...whole, ...shrink, adaptive: false }, {}, { factors: outputs.rows });
      const copy = parts.allocate('copy', ROWS, rank);
      await parts.run('copy-rows', whole, { source: outputs.rows }, { target: copy });
      requireNear(await tasks.fetched(copy, rank), p, 1e-5, 'the rows');
      requireNear(await tasks.fetched(outputs.columns, rank), q, 1e-5, 'the columns');
      parts.release();
    },
  },
  {
    name: 'initial rows',
    onlyCpu: true,
    async check(tasks, rank) {
      const { parts } = tasks;
      const [low, high] = [1, 2].map((seed) =>
        Uint32Array.from({ length: 20 }, (_, row) => mix32(row, seed)),
      );
      const keys = parts.put('keys', { layout: 'key-hashes', rows: 20, columns: { low, high } });
      const factors = parts.allocate('factors', 20, rank);
      await parts.run('initialize', { from: 0, to: 20, rank, seed: 3 }, { keys }, { factors });
      const seeds = [1, 2].map((half) => mix32(3, half));
      const expected = Array.from(low, (_, row) =>
        drawRow(low[row] ^ seeds[0], high[row] ^ seeds[1], rank),
      ).flatMap((row) => [...row]);
      requireNear(await tasks.fetched(factors, rank), expected, 1e-5, 'the rows');
      parts.release();
    },
  },
  {
    name: 'a search for one row',
    onlyCpu: true,
    async check(tasks, rank) {
      const { parts } = tasks;
      const [x, theta] = matrices(rank).map(valuesOf);
      const vectors: Partition = { layout: 'vectors', rows: COLUMNS, columns: { values: theta } };
      const index = Object.fromEntries(
        Object.entries(indexShapes(COLUMNS, rank)).map(([name, shape]) => [
          name,
          parts.allocate(name, shape.rows, shape.columns, { ...shape, contents: 'any' }),
        ]),
      );
      await parts.run(
        'prepare-search',
        { width: rank, rank, normalized: false },
        { vectors: parts.put('vectors', vectors) },
        index,
      );
      const query = [...x.subarray(3 * rank, 4 * rank)];
      const { values } = await parts.run('search', { searches: [{ query, n: 9, left: [] }] }, index, {});
      const [found] = values.found as readonly { readonly items: readonly number[] }[];
      expect(found.items).toEqual(topN(scoresOf(rank, 3), 9, new Set()));
      parts.release();
    },
  },
];

function implicitError(rank: number): number {
  const { offsets, indices, values } = block.columns as unknown as Block;
  let sum = 0;
  for (let row = 0; row < ROWS; row++) {
    const scores = scoresOf(rank, row);
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const { weight } = weightsOf(values[k], WEIGHTS);
      const [s, p] = [scores[indices[k]], values[k] > 0 ? 1 : 0];
      sum += weight * (p - s) ** 2 + WEIGHTS.base * p * (1 - 2 * s);
    }
  }
  return sum;
}
