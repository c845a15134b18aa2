/**
 * Facts of sorted ratings, which tasks sum with kernels, compared with sums in the block's order in float64
 * and the deviation of two passes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RatingInput } from '../../api/rating-input.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { Session } from '../../index.ts';
import { rowFacts, sortedMeans, sortedRatingFacts } from '../../operators/evaluation/rating-facts.ts';
import { ofParts, partOfBlock, ratingsOf, rowsOfBlock } from '../../operators/ratings/ratings.ts';
import { balancedRanges } from '../../operators/ratings/row-ranges.ts';
import { ratingScale, standardize } from '../../operators/sgd/data/data.ts';
import { sortedBlocks } from '../support/blocks.ts';
import { ratingFacts } from '../support/devices/slow-facts.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

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

describe('the facts of sorted ratings', () => {
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => session.close());

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
      const {
        means,
        columnCounts: _counts,
        deviation: _,
        mean,
        ...shape
      } = ratingFacts(blocks.byUser, blocks.byItem.rows, 'users');
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
        await new RatingInput({}).index(session.from(ratingBatches(long, 100_000)), undefined, ctx),
        'keep',
        ctx,
      );
      const bands = [0, 17, 500_000, 1_048_500].map((from, at, cuts) => ({
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
        const { means: twins, mean: twin, deviation: _, ...rest } = expected;
        expect(shape).toEqual(rest);
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
