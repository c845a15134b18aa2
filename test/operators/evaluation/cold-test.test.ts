/** Warnings about test pairs of users and items without training ratings. */
import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Model, type ProgressEvent, SGD } from '../../../index.ts';
import { coldWarnings } from '../../../operators/evaluation/model-warnings.ts';
import { randomRatings, ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

describe('cold pairs of a test set', () => {
  it('are warned of from 30 % on, with their number and what is left', () => {
    expect(coldWarnings({ pairs: 10, coldPairs: 2 })).toEqual([]);
    expect(coldWarnings({ pairs: 10, coldPairs: 0 })).toEqual([]);
    expect(coldWarnings({ pairs: 10, coldPairs: 3 })).toMatchObject([{ code: 'mostly-cold' }]);
    expect(coldWarnings({ pairs: 10_084, coldPairs: 8794 })).toEqual([
      {
        code: 'mostly-cold',
        text: expect.stringMatching(
          /^8,794 of the test set's 10,084 pairs \(87 %\) are cold: .* of the other 1,290 pairs alone\. After a split by time .*leave-out by time/,
        ),
      },
    ]);
  });

  it('have a warning of their own where all are cold, and where there is no pair', () => {
    expect(coldWarnings({ pairs: 2, coldPairs: 2 })).toMatchObject([
      { code: 'cold-test', text: expect.stringMatching(/knows none of the test set's 2 pairs/) },
    ]);
    expect(coldWarnings({ pairs: 0, coldPairs: 0 })).toMatchObject([
      { code: 'cold-test', text: expect.stringMatching(/has no ratings/) },
    ]);
  });
});

describe('a test set that is mostly cold', () => {
  const rows = randomRatings(5, 40, 30, 600);
  const cold = rows.slice(0, 87).map(({ user, ...rest }) => ({ user: user + 1_000_000, ...rest }));
  const test = [...cold, ...rows.slice(0, 13)];
  const expected = {
    code: 'mostly-cold',
    text: expect.stringMatching(/^87 of .* 100 pairs \(87 %\) are cold/),
  };
  const dataset = (of: readonly Triple[]) => session.from(ratingBatches([...of]));
  const coded = (events: readonly ProgressEvent[]) =>
    events.filter((event) => event.type === 'warning' && event.code === 'mostly-cold');
  let model: Model;
  beforeAll(async () => {
    model = await new ALS({ rank: 2, maxIter: 1 }).fit(dataset(rows));
  });

  it('is warned of by fit, in the report and as one event', async () => {
    const events: ProgressEvent[] = [];
    const trained = await new SGD({ rank: 2, maxIter: 1 }).fit(dataset(rows), {
      validation: dataset(test),
      onEvent: (event) => events.push(event),
    });
    expect(trained.training?.warnings).toContainEqual(expected);
    expect(coded(events)).toEqual([{ type: 'warning', ...expected }]);
  });

  it('is warned of by evaluate, in the result and as one event', async () => {
    const events: ProgressEvent[] = [];
    const { warnings } = await model.evaluate(dataset(test), { onEvent: (event) => events.push(event) });
    expect(warnings).toContainEqual(expected);
    expect(coded(events)).toEqual([{ type: 'warning', ...expected }]);
  });

  it('is warned of by evaluateRanking, unless cold pairs count as misses', async () => {
    const events: ProgressEvent[] = [];
    const { warnings } = await model.evaluateRanking(dataset(test), {
      onEvent: (event) => events.push(event),
    });
    expect(warnings).toContainEqual(expected);
    expect(coded(events)).toEqual([{ type: 'warning', ...expected }]);
    const missed = await model.evaluateRanking(dataset(test), { coldPairs: 'miss' });
    expect(missed.warnings.map(({ code }) => code)).not.toContain('mostly-cold');
  });
});
