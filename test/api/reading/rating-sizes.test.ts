/**
 * Ratings of any finite magnitude train with default parameters, by every algorithm, without a step that is
 * repeated.
 */
import { describe, expect, it } from 'vitest';
import { ALS, type ProgressEvent, SGD } from '../../../index.ts';
import { randomRatings, ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

const rows = randomRatings(8, 60, 50, 1500);
const sizes: Readonly<Record<string, (rating: number) => number>> = {
  'of a thousandth': (rating) => 1e-3 * rating,
  'of a billionth': (rating) => 1e-9 * rating,
  'of millions': (rating) => 3e5 * rating,
  'far from 0 beside their deviation': (rating) => 1e6 + rating,
  'far below 0 beside their deviation': (rating) => -1e6 - rating,
};

describe.each(Object.entries(sizes))('ratings %s', (_, sized) => {
  const ratings = rows.map((row: Triple) => ({ ...row, rating: sized(row.rating) }));
  const mean = ratings.reduce((sum, { rating }) => sum + rating, 0) / ratings.length;
  const deviation = Math.hypot(...ratings.map(({ rating }) => rating - mean)) / Math.sqrt(ratings.length);

  it.each(
    _.startsWith('far')
      ? [
          ['ALS', false],
          ['SGD', true],
        ]
      : [
          ['ALS', true],
          ['SGD', false],
        ],
  )('train by %s, biases %s', async (algorithm, biases) => {
    const events: ProgressEvent[] = [];
    const trainer = algorithm === 'ALS' ? new ALS({ biases }) : new SGD({ biases });
    const model = await trainer.fit(session.from(ratingBatches(ratings)), {
      onEvent: (event) => events.push(event),
    });
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
    const { rmse } = await model.evaluate(session.from(ratingBatches(ratings)));
    // Without biases and far from 0, the mean is only approximated. If ratings are small, λ in their own
    // unit keeps factors at 0.
    expect(rmse).toBeLessThan(
      biases
        ? 1.1 * deviation
        : Math.max(
            1.02 * (Math.abs(mean) < 1 ? Math.hypot(mean, deviation) : deviation),
            0.005 * Math.abs(mean),
          ),
    );
  });
});
