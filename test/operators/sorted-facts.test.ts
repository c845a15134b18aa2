/** Facts of sorted ratings, which tasks sum by kernels, beside those of the block's order in float64, and the deviation of two passes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RatingInput } from '../../api/rating-input.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { Session } from '../../index.ts';
import { ratingFacts } from '../../operators/evaluation/rating-facts.ts';
import { sortedMeans, sortedRatingFacts } from '../../operators/evaluation/sorted-facts.ts';
import { buildRatingBlocks } from '../../operators/ratings/rating-blocks.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

type Rows = ReturnType<typeof randomRatings>;

const rows = randomRatings(31, 300, 200, 9000);
/** Ratings whose deviation is far below their mean. */
const lifted: Rows = rows.map((row, at) => ({ ...row, rating: 4096 + (at % 9) / 8 }));
/** One item has more ratings than scratch holds at a time, and its neighbour one. */
const long: Rows = Array.from({ length: (1 << 20) + 77 }, (_, user) => ({ ...rows[0], user, item: user === 5 ? 2 : 1, rating: 1 + (user % 5) }));

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
      const indexed = await new RatingInput({}).index(session.from(ratingBatches([...given], 100_000)), undefined, ctx);
      const blocks = await buildRatingBlocks(indexed, 'keep', ctx);
      const { means, columnCounts: _counts, deviation: _, mean, ...shape } = ratingFacts(blocks.byUser, blocks.byItem.rows, 'users');
      const facts = await sortedRatingFacts(blocks, ctx);
      expect(facts).toMatchObject(shape);
      expect(Math.abs(facts.mean - mean)).toBeLessThanOrEqual(1e-12 * Math.abs(mean));
      const deviation = Math.sqrt(blocks.byUser.values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / shape.ratings);
      expect(Math.abs(facts.deviation - deviation)).toBeLessThanOrEqual(1e-12 * Math.abs(mean));
      const found = await sortedMeans(blocks.byUser, facts, ctx);
      for (const side of ['rows', 'columns'] as const) found[side].forEach((value, at) => Math.abs(value - means[side][at]) <= 1e-5 || expect(value).toBe(means[side][at]));
    });
  });
});
