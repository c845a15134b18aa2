import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Dataset, type ProgressEvent, type RankingOptions, Session } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { sampleSize } from '../../support/deep.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { ratingBatch, type Triple } from '../../support/ratings.ts';
import { chancesOf, coverageOf, metricsOfList } from '../../support/reference/ranking.ts';
import { type Case, close, modelOf, randomCase, rowsOf } from './ranking-cases.ts';

const METRICS = ['hit-rate', 'ndcg', 'auc', 'coverage'] as const;

/** These metrics by their definitions, also the counts. */
function reference({ problem, candidateSets }: Case, k: number, score = problem.score) {
  const sums = { 'hit-rate': 0, ndcg: 0, auc: 0 };
  const front: number[][] = [];
  let [users, without] = [0, 0];
  for (let user = 0; user < problem.users; user++) {
    const seen = problem.seen[user];
    const tested = [...problem.test[user]];
    const positives = new Set(tested.filter((item) => item < problem.items && !seen.has(item)));
    const unknown = problem.policy === 'miss' ? tested.filter((item) => item >= problem.items).length : 0;
    if (positives.size + unknown === 0) continue;
    const others = [...candidateSets[user]].filter((item) => !seen.has(item) && !positives.has(item));
    if (others.length === 0) {
      without++;
      continue;
    }
    users++;
    const list = [...others, ...positives];
    const scores = list.map((item) => score(user, item));
    const isPositive = list.map((item) => positives.has(item));
    const measured = metricsOfList(scores, isPositive, positives.size + unknown, k);
    for (const name of ['hit-rate', 'ndcg', 'auc'] as const) sums[name] += measured[name];
    const chances = chancesOf(scores, k);
    front.push(Array.from({ length: problem.items }, (_, item) => chances[list.indexOf(item)] ?? 0));
  }
  const metrics = {
    [`hit-rate@${k}`]: sums['hit-rate'] / users,
    [`ndcg@${k}`]: sums.ndcg / users,
    auc: sums.auc / users,
    [`coverage@${k}`]: coverageOf(front),
  };
  return { metrics, users, without };
}

describe.each(['cpu', ...(noGpu ? [] : ['gpu'])] as const)('rankings of candidates on a %s', (device) => {
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: device as 'cpu' | 'gpu', workers: 1 });
  });
  afterAll(() => session?.close());

  it('have the metrics and counts of an independent reference, ties included', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 10_000 }),
        fc.integer({ min: 4, max: 12 }),
        fc.integer({ min: 5, max: 30 }),
        fc.constantFrom('drop' as const, 'miss' as const),
        async (seed, users, items, coldPairs) => {
          const drawn = randomCase(seed, users, items, coldPairs);
          const one = { ...drawn, test: drawn.test.filter(({ user }) => user >= 0) };
          const own = reference(one, 3);
          fc.pre(own.users > 0);
          const found = await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), {
            k: 3,
            exclude: rowsOf(session, one.seen),
            candidates: rowsOf(session, one.candidates),
            metrics: METRICS,
            coldPairs,
            resamples: 0,
          });
          close(found.metrics, own.metrics, 1e-6);
          const owners = (item: number) => one.problem.seen.filter((seen) => seen.has(item)).length;
          close(found.baselines.popularity!, reference(one, 3, (_, item) => owners(item)).metrics, 1e-9);
          expect(found.users).toBe(own.users);
          expect(found.candidates).toMatchObject({
            pairs: one.candidates.length,
            coldPairs: one.candidates.filter(({ user, item }) => user >= 10 * users || item >= 5 * items)
              .length,
            usersWithout: own.without,
          });
        },
      ),
      { numRuns: sampleSize(device === 'cpu' ? 30 : 6), seed: 5 },
    );
  });
});

describe('candidates', async () => {
  const session = await cpuSession();
  const one = randomCase(3, 9, 20, 'drop');

  const evaluated = async (candidates: readonly Triple[], options: RankingOptions = {}) => {
    const events: ProgressEvent[] = [];
    const found = await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), {
      k: 3,
      exclude: rowsOf(session, one.seen),
      candidates: rowsOf(session, candidates),
      resamples: 0,
      ...options,
      onEvent: (event) => events.push(event),
    });
    return { found, warnings: events.flatMap((event) => (event.type === 'warning' ? [event.text] : [])) };
  };

  it('that the model does not know, and users without any, are warned of', async () => {
    const { user } = one.test.find((row) => row.user >= 0 && row.item < 5 * one.problem.items)!;
    const rows = [0, 1, 2, 3].map((item) => ({ user, item: 5 * item, rating: 1 }));
    const { found, warnings } = await evaluated([
      ...rows,
      { user: 777, item: 5, rating: 1 },
      { user, item: 999, rating: 1 },
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
    const { users, items } = one.problem;
    const all = Array.from({ length: users * items }, (_, k) => ({
      user: 10 * Math.floor(k / items),
      item: 5 * (k % items),
      rating: 1,
    }));
    const { found } = await evaluated(all, { coldPairs: 'miss' });
    const whole = await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), {
      k: 3,
      exclude: rowsOf(session, one.seen),
      resamples: 0,
      coldPairs: 'miss',
    });
    expect(found.users).toBe(whole.users);
    close(found.metrics, whole.metrics, 1e-9);
    close(found.baselines.popularity!, whole.baselines.popularity!, 1e-9);
    const few = (await evaluated(one.candidates, { rankUsers: 2 })).found;
    expect(few.users).toBe(2);
    expect(few.availableUsers).toBeGreaterThan(2);
  });

  it('are refused where there is none, and without a column of items', async () => {
    await expect(evaluated([])).rejects.toThrow('there are no candidates');
    const named = session.from([ratingBatch([{ user: 0, item: 0, rating: 1 }]).selectAt([0, 2])]);
    const ranked = (candidates: Dataset) =>
      modelOf(session, one).evaluateRanking(rowsOf(session, one.test), { candidates });
    await expect(ranked(named)).rejects.toThrow(/"item"/);
    await expect(ranked([] as unknown as Dataset)).rejects.toThrow(
      /the option candidates of evaluateRanking/,
    );
  });
});
