import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { degreeBins } from '../../../cli/page/sections/ratings.ts';
import { ErrorCollector } from '../../../operators/evaluation/evaluate.ts';

describe('degreeBins', () => {
  it('counts rows in powers of two, without those that have no ratings', () => {
    expect(degreeBins([0, 2, 3, 4, 9])).toEqual([
      { least: 2, most: 3, rows: 2, ratings: 5 },
      { least: 4, most: 7, rows: 1, ratings: 4 },
      { least: 8, most: 15, rows: 1, ratings: 9 },
    ]);
    expect(degreeBins([])).toEqual([]);
  });

  it('counts every row with ratings once', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5000 })), (counts) => {
        const bins = degreeBins(counts);
        expect(bins.reduce((sum, { rows }) => sum + rows, 0)).toBe(
          counts.filter((count) => count > 0).length,
        );
        expect(bins.reduce((sum, { ratings }) => sum + ratings, 0)).toBe(
          counts.reduce((sum, count) => sum + count, 0),
        );
      }),
    );
  });
});

describe('ErrorCollector', () => {
  it('gives the errors by rating, degree and prediction', () => {
    const collector = new ErrorCollector({ users: [1, 5], items: [3] });
    collector.add(4, 3, 3.5, 0, 0);
    collector.add(2, 3, 2, 1, 0);
    collector.add(4, 4, 4, 1, 0);
    const found = collector.breakdown();
    expect(found?.byRating).toEqual([
      { least: 2, most: 2, pairs: 1, rmse: 1, meanError: -1, dampedMeansRmse: 0 },
      {
        least: 4,
        most: 4,
        pairs: 2,
        rmse: Math.sqrt(0.5),
        meanError: 0.5,
        dampedMeansRmse: Math.sqrt(0.125),
      },
    ]);
    expect(found?.byUserRatings?.map(({ least, most, pairs }) => [least, most, pairs])).toEqual([
      [1, 1, 1],
      [5, 5, 2],
    ]);
    expect(found?.byItemRatings).toHaveLength(1);
    expect(found?.calibration.map(({ pairs, predicted, rated }) => [pairs, predicted, rated])).toEqual([
      [1, 3, 4],
      [1, 3, 2],
      [1, 4, 4],
    ]);
  });

  it('has ranges where ratings have many values, and no parts that it cannot know', () => {
    const collector = new ErrorCollector({});
    for (let k = 0; k <= 100; k++) collector.add(k, 50, Number.NaN, 0, 0);
    const found = collector.breakdown();
    expect(found?.byRating).toHaveLength(20);
    expect(found?.byRating[0]).toMatchObject({ least: 0, most: 4, pairs: 5 });
    expect(found?.byRating[0]).not.toHaveProperty('dampedMeansRmse');
    expect(found).not.toHaveProperty('byUserRatings');
    expect(new ErrorCollector({}).breakdown()).toBeUndefined();
  });

  it('keeps pairs at even distances beyond a million', () => {
    const collector = new ErrorCollector({});
    const all = 3 * 2 ** 20;
    for (let k = 0; k < all; k++) collector.add(k % 2 === 0 ? 1 : 2, 1.5, 1.5, 0, 0);
    const kept = collector.breakdown()?.byRating.reduce((sum, { pairs }) => sum + pairs, 0) ?? 0;
    expect(kept).toBeGreaterThan(2 ** 19);
    expect(kept).toBeLessThanOrEqual(2 ** 20);
    expect(collector.breakdown()?.calibration).toHaveLength(10);
  });
});
