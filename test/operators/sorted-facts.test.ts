/**
 * Facts of sorted ratings, which tasks sum with kernels, compared with sums in the block's order in float64
 * and the deviation of two passes.
 */
import { describe, expect, it } from 'vitest';
import { RatingInput } from '../../api/rating-input.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import {
  type BlockMeans,
  DAMPING,
  rowFacts,
  sortedMeans,
  sortedRatingFacts,
} from '../../operators/evaluation/rating-facts.ts';
import {
  ofParts,
  partOfBlock,
  type RatingBlock,
  ratingsOf,
  rowsOfBlock,
} from '../../operators/ratings/ratings.ts';
import { balancedRanges } from '../../operators/ratings/row-ranges.ts';
import { ratingScale, standardize } from '../../operators/sgd/data/data.ts';
import { sortedBlocks } from '../support/blocks.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

const session = await cpuSession();

type Rows = ReturnType<typeof randomRatings>;

const rows = randomRatings(31, 300, 200, 9000);
/** Ratings whose deviation is far below their mean. */
const lifted: Rows = rows.map((row, at) => ({ ...row, rating: 4096 + (at % 9) / 8 }));
/** One item has more ratings than scratch holds at a time, and its neighbour one. */
const long: Rows = Array.from({ length: (1 << 20) + 77 }, (_, user) => ({
  ...rows[0],
  user,
  item: user === 5 ? 2 : 1,
  rating: 1 + (user % 5),
}));

/**
 * The facts in float64, rating by rating. Damped means are the item's first, then the user's of what is left; `given`:
 * μ and means of earlier ratings, NaN for rows and columns that are new.
 */
function ratingFacts(block: RatingBlock, columns: number, rowsAre: 'users' | 'items', given?: BlockMeans) {
  const { rows, offsets, indices, values } = block;
  const counts = { rows: new Int32Array(rows), columns: new Int32Array(columns) };
  const each = (use: (row: number, column: number, value: number) => void) => {
    for (let row = 0; row < rows; row++)
      for (let k = offsets[row]; k < offsets[row + 1]; k++) use(row, indices[k], values[k]);
  };
  each((row, column) => {
    counts.rows[row]++;
    counts.columns[column]++;
  });
  const [least, most] = values.reduce(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Infinity, -Infinity],
  );
  const mean = least === most ? least : values.reduce((sum, value) => sum + value, 0) / values.length;
  const means = {
    mean: given?.mean ?? mean,
    rows: new Float32Array(rows),
    columns: new Float32Array(columns),
  };
  const fill = (side: 'rows' | 'columns', damping: number) => {
    const sums = new Float64Array(means[side].length);
    each((row, column, value) => {
      sums[side === 'rows' ? row : column] += value - means.mean - means.rows[row] - means.columns[column];
    });
    sums.forEach((sum, at) => {
      const known = given?.[side][at] ?? Number.NaN;
      means[side][at] = Number.isNaN(known) ? sum / (counts[side][at] + damping) : known;
    });
  };
  const [users, items] =
    rowsAre === 'users' ? (['rows', 'columns'] as const) : (['columns', 'rows'] as const);
  fill(items, DAMPING.items);
  fill(users, DAMPING.users);
  const sideOf = (side: 'rows' | 'columns') => ({
    rated: counts[side].filter((count) => count > 0).length,
    single: counts[side].filter((count) => count === 1).length,
  });
  const whole = values.every(Number.isInteger);
  const shape = { ratings: values.length, least, most, whole, users: sideOf(users), items: sideOf(items) };
  return { mean, means, shape, columnCounts: counts.columns };
}

describe('the facts of sorted ratings', () => {
  it.each([
    ['of many lengths', rows],
    ['with a small deviation', lifted],
    ['that are equal', rows.map((row) => ({ ...row, rating: 3.3 }))],
    ['of a row longer than scratch', long],
  ] as const)('are those of one pass: ratings %s', async (_name, given) => {
    await Holdings.within(session.context(), async (ctx) => {
      const indexed = await new RatingInput({}).index(
        session.from(ratingBatches([...given], 100_000)),
        undefined,
        ctx,
      );
      const blocks = await sortedBlocks(indexed, 'keep', ctx);
      const { means, mean, shape } = ratingFacts(blocks.byUser, blocks.byItem.rows, 'users');
      const facts = await sortedRatingFacts(
        { byUser: ratingsOf(blocks.byUser), byItem: ratingsOf(blocks.byItem) },
        ctx,
      );
      expect(facts).toMatchObject(shape);
      expect(Math.abs(facts.mean - mean)).toBeLessThanOrEqual(1e-12 * Math.abs(mean));
      const deviation = Math.sqrt(
        blocks.byUser.values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / shape.ratings,
      );
      expect(Math.abs(facts.deviation - deviation)).toBeLessThanOrEqual(1e-12 * Math.abs(mean));
      const found = await sortedMeans(ratingsOf(blocks.byUser), facts, ctx);
      for (const side of ['rows', 'columns'] as const)
        found[side].forEach(
          (value, at) => Math.abs(value - means[side][at]) <= 1e-5 || expect(value).toBe(means[side][at]),
        );
    });
  });

  it('have a scale of the same bits in one block and in bands, near that of one pass', async () => {
    await Holdings.within(session.context(), async (ctx) => {
      const { byUser: block } = await sortedBlocks(
        await new RatingInput({}).index(session.from(ratingBatches(rows)), undefined, ctx),
        'keep',
        ctx,
      );
      const bands = [0, 17, 150, 290].map((from, at, cuts) => ({
        from,
        to: cuts[at + 1] ?? block.rows,
      }));
      const parts = ofParts(
        bands.map(({ from, to }, partition) =>
          partOfBlock(from, rowsOfBlock(block, from, to, { name: 'scaled', partition, version: 0 })),
        ),
      );
      const scale = await ratingScale(ratingsOf(block), true, {}, ctx);
      expect(await ratingScale(parts, true, {}, ctx)).toEqual(scale);
      const mean = block.values.reduce((sum, value) => sum + value, 0) / block.ratings;
      expect(Math.abs(scale.mean / mean - 1)).toBeLessThan(1e-12);
      expect(
        Math.abs(
          scale.deviation /
            Math.sqrt(block.values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / block.ratings) -
            1,
        ),
      ).toBeLessThan(1e-12);
      const expected = block.values.map((value) => (value - scale.center) / scale.deviation);
      expect(Math.abs((await standardize(parts, scale, ctx)) / block.ratings - 1)).toBeLessThan(1e-6);
      expect(block.values).toEqual(expected);
    });
  });

  it.each([
    ['users', 'one block', undefined],
    ['items', 'one block', undefined],
    ['users', 'bands', undefined],
    ['items', 'bands', 2.5],
  ] as const)(
    'are those of one pass over the rows alone: %s in %s, with known means %j',
    async (rowsAre, _form, known) => {
      await Holdings.within(session.context(), async (ctx) => {
        const { byUser, byItem } = await sortedBlocks(
          await new RatingInput({}).index(session.from(ratingBatches([...rows])), undefined, ctx),
          'keep',
          ctx,
        );
        const [block, columns] = rowsAre === 'users' ? [byUser, byItem.rows] : [byItem, byUser.rows];
        const parts = balancedRanges(block.offsets, 3).map(({ from, to }, partition) =>
          partOfBlock(from, rowsOfBlock(block, from, to, { name: 'bands', partition, version: 0 })),
        );
        const given =
          known === undefined
            ? undefined
            : {
                mean: known,
                rows: Float32Array.from({ length: block.rows }, (_, row) =>
                  row % 3 === 0 ? 0.5 : Number.NaN,
                ),
                columns: new Float32Array(columns).fill(Number.NaN),
              };
        const expected = ratingFacts(block, columns, rowsAre, given);
        const { means, mean, deviation, ...shape } = await rowFacts(
          _form === 'bands' ? ofParts(parts) : ratingsOf(block),
          columns,
          rowsAre,
          given,
          ctx,
        );
        const { means: twins, mean: twin, shape: rest, columnCounts } = expected;
        expect(shape).toEqual({ ...rest, columnCounts });
        expect(Math.abs(mean - twin)).toBeLessThanOrEqual(1e-12 * Math.abs(twin));
        expect(
          Math.abs(
            deviation /
              Math.sqrt(block.values.reduce((sum, value) => sum + (value - twin) ** 2, 0) / block.ratings) -
              1,
          ),
        ).toBeLessThanOrEqual(1e-12);
        for (const side of ['rows', 'columns'] as const)
          means[side].forEach(
            (value, at) => Math.abs(value - twins[side][at]) <= 1e-6 || expect(value).toBe(twins[side][at]),
          );
      });
    },
  );
});
