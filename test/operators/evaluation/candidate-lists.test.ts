import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Dataset, type ProgressEvent, type RankingOptions, Session } from '../../../index.ts';
import { ratingBatch, type Triple } from '../../support/ratings.ts';
import { dataset, modelOf, randomCase } from './candidate-cases.ts';

describe('candidates', () => {
  let session: Session;
  const one = randomCase(3, 9, 20);
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => session?.close());

  const evaluated = async (candidates: readonly Triple[], options: RankingOptions = {}) => {
    const events: ProgressEvent[] = [];
    const found = await modelOf(session, one).evaluateRanking(dataset(session, one.test), {
      k: 3,
      exclude: dataset(session, one.seen),
      candidates: dataset(session, candidates),
      resamples: 0,
      ...options,
      onEvent: (event) => events.push(event),
    });
    return { found, warnings: events.flatMap((event) => (event.type === 'warning' ? [event.text] : [])) };
  };

  it('that the model does not know, and users without any, are warned of', async () => {
    const first = one.test.find(({ item }) => item < one.items)!.user;
    const rows = [0, 1, 2, 3].map((item) => ({ user: first, item, rating: 1 }));
    const { found, warnings } = await evaluated([
      ...rows,
      { user: 77, item: 1, rating: 1 },
      { user: first, item: 99, rating: 1 },
    ]);
    expect(found).toMatchObject({ users: 1, candidates: { pairs: 6, coldPairs: 2 } });
    expect(warnings).toContain(
      '2 candidates have a user or an item that the model does not know, and are not ranked',
    );
    expect(warnings).toContain(
      `${found.candidates?.usersWithout} users with test pairs have no candidate to rank them with, and are not measured`,
    );
  });

  it('of every item give the full rankings', async () => {
    const all = Array.from({ length: one.users * one.items }, (_, k) => ({
      user: Math.floor(k / one.items),
      item: k % one.items,
      rating: 1,
    }));
    const { found } = await evaluated(all, { coldPairs: 'miss' });
    const whole = await modelOf(session, one).evaluateRanking(dataset(session, one.test), {
      k: 3,
      exclude: dataset(session, one.seen),
      resamples: 0,
      coldPairs: 'miss',
    });
    expect(found.users).toBe(whole.users);
    for (const [name, value] of Object.entries(whole.metrics))
      expect(found.metrics[name], name).toBeCloseTo(value, 9);
    for (const [name, value] of Object.entries(whole.baselines.popularity!))
      expect(found.baselines.popularity?.[name], name).toBeCloseTo(value, 9);
  });

  it('of some users are drawn with them', async () => {
    const { found } = await evaluated(one.candidates, { rankUsers: 2 });
    expect(found).toMatchObject({ users: 2 });
    expect(found.availableUsers).toBeGreaterThan(2);
  });

  it('are refused where there is none, and without a column of items', async () => {
    await expect(evaluated([])).rejects.toThrow('there are no candidates');
    const named = session.from([ratingBatch([{ user: 0, item: 0, rating: 1 }]).selectAt([0, 2])]);
    await expect(
      modelOf(session, one).evaluateRanking(dataset(session, one.test), { candidates: named }),
    ).rejects.toThrow(/"item"/);
    await expect(
      modelOf(session, one).evaluateRanking(dataset(session, one.test), {
        candidates: [] as unknown as Dataset,
      }),
    ).rejects.toThrow(/the option candidates of evaluateRanking/);
  });
});
