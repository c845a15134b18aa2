import { describe, expect, it } from 'vitest';
import { CancelledError, type ProgressEvent } from '../../../index.ts';
import { referenceMetrics } from '../../support/reference/ranking.ts';
import { type Case, close, modelOf, randomCase, rowsOf } from './ranking-cases.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

type Score = (user: number, item: number) => number;

/** Sets of users of each item. */
function usersOf({ problem: { items, seen } }: Case): Set<number>[] {
  return Array.from(
    { length: items },
    (_, item) => new Set(seen.flatMap((own, user) => (own.has(item) ? [user] : []))),
  );
}

/** The sum of cosines with the user's items, in float32 as the tasks add them; all items are neighbours. */
function knnScore(one: Case): Score {
  const users = usersOf(one);
  const cosine = (a: number, b: number) => {
    const common = [...users[a]].filter((user) => users[b].has(user)).length;
    return Math.fround(common / (Math.sqrt(users[a].size * users[b].size) + 10));
  };
  return (user, item) =>
    [...one.problem.seen[user]]
      .sort((a, b) => a - b)
      .filter((own) => own !== item && cosine(own, item) > 0)
      .reduce((sum, own) => Math.fround(sum + cosine(own, item)), 0);
}

/** EASE in float64, by Gauss and Jordan. */
function easeScore(one: Case): Score {
  const users = usersOf(one);
  const n = users.length;
  const rows = users.map((own, i) => [
    ...users.map((other, j) => [...own].filter((user) => other.has(user)).length + (i === j ? 500 : 0)),
    ...users.map((_, j) => (i === j ? 1 : 0)),
  ]);
  for (let k = 0; k < n; k++) {
    const pivot = rows[k][k];
    for (let j = 0; j < 2 * n; j++) rows[k][j] /= pivot;
    for (let i = 0; i < n; i++) {
      const factor = rows[i][k];
      if (i !== k) for (let j = 0; j < 2 * n; j++) rows[i][j] -= factor * rows[k][j];
    }
  }
  const inverse = (i: number, j: number) => rows[i][n + j];
  const scores = one.problem.seen.map((own) =>
    users.map((_, item) => [...own].reduce((sum, i) => sum - inverse(i, item) / inverse(item, item), 0)),
  );
  return (user, item) => scores[user][item];
}

describe('rankings from item to item', () => {
  const measured = async (one: Case, more: object = {}) =>
    (
      await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), {
        k: 5,
        exclude: rowsOf(session, one.seen),
        baselines: ['item-knn', 'ease'],
        resamples: 0,
        ...more,
      })
    ).baselines;

  it.each([
    [3, 30, 133],
    [4, 60, 150],
  ])('agree with float64, seed %i, %i users, %i items', async (seed, users, items) => {
    const one = randomCase(seed, users, items, 'drop');
    const { itemKnn, ease, popularity } = await measured(one);
    expect(popularity).toBeUndefined();
    const expected = (score: Score) => referenceMetrics({ ...one.problem, score }, 5);
    close(ease ?? {}, expected(easeScore(one)), 1e-4);
    // With more items the neighbours are not all others.
    if (items <= 101) close(itemKnn ?? {}, expected(knnScore(one)), 1e-12);
    else expect(itemKnn?.['ndcg@5']).toBeGreaterThan(0);
  });

  it('rank candidates, and fewer users', async () => {
    const one = randomCase(5, 30, 40, 'drop');
    const all = one.problem.seen.flatMap((_, user) =>
      Array.from({ length: 40 }, (__, item) => ({ user: 10 * user, item: 5 * item, rating: 1 })),
    );
    // Candidates of all items are the ranking of all items; coverage counts lists of users without positives.
    const metrics = ['ndcg', 'recall', 'auc'];
    const whole = await measured(one, { metrics });
    expect(await measured(one, { metrics, candidates: rowsOf(session, all) })).toEqual(whole);
    const few = await measured(one, { metrics, rankUsers: 5 });
    expect(few.ease?.['ndcg@5']).toBeGreaterThan(0);
    expect(few).not.toEqual(whole);
  });

  it('are refused where they cannot be computed', async () => {
    const one = randomCase(7, 5, 6, 'drop');
    const evaluate = (options: object) => measured(one, options);
    await expect(evaluate({ exclude: undefined })).rejects.toThrow(
      'baselines are computed from the training ratings',
    );
    await expect(evaluate({ baselines: ['knn'] })).rejects.toThrow(
      'baselines must be true, false or a list of baselines, got "knn"',
    );
    await expect(evaluate({ baselines: 'ease' })).rejects.toThrow('a list of baselines, got "ease"');
    const items = 20_001;
    const large = randomCase(8, 2, 3, 'drop');
    const wide = {
      ...large,
      problem: { ...large.problem, items },
      itemFactors: new Float32Array(3 * items),
    };
    await expect(measured(wide)).rejects.toThrow('has at most 20,000; there are 20,001');
  });

  it('can be cancelled', async () => {
    const one = randomCase(9, 200, 300, 'drop');
    for (const phase of ['item-knn', 'ease']) {
      const stop = new AbortController();
      const onEvent = (event: ProgressEvent) => {
        if (event.type === 'phase-start' && event.phase === phase) stop.abort();
      };
      await expect(measured(one, { signal: stop.signal, onEvent })).rejects.toBeInstanceOf(CancelledError);
    }
  });
});
