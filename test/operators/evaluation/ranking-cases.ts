/** Random factors with seen and held-out ratings. */
import { expect } from 'vitest';
import { type Dataset, Model, Session } from '../../../index.ts';
import { ratingBatch, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import type { RankingProblem } from '../../support/reference/ranking.ts';

export interface Case {
  readonly problem: RankingProblem;
  readonly seen: readonly Triple[];
  readonly test: readonly Triple[];
  /** Items to rank for some users. Some are seen, positives, repeated, or unknown; some users have none. */
  readonly candidates: readonly Triple[];
  readonly candidateSets: readonly ReadonlySet<number>[];
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
}

export const RANK = 3;

/**
 * Whole numbers as factors, so that ties are common; ids are 10 u and 5 v. Test items of the last two ids are
 * unknown to the model.
 */
export function randomCase(seed: number, users: number, items: number, policy: 'drop' | 'miss'): Case {
  const random = testRandom(seed + 1);
  const whole = () => Math.floor(random() * 4) - 1;
  const [userFactors, itemFactors] = [
    Float32Array.from({ length: users * RANK }, whole),
    Float32Array.from({ length: items * RANK }, whole),
  ];
  const [seen, test]: Triple[][] = [[], []];
  const sets = {
    seen: Array.from({ length: users }, () => new Set<number>()),
    test: Array.from({ length: users }, () => new Set<number>()),
  };
  for (let user = 0; user < users; user++) {
    for (let item = 0; item < items + 2; item++) {
      const draw = random();
      const triple = { user: 10 * user, item: 5 * item, rating: 1 + Math.floor(random() * 5) };
      if (draw < 0.3 && item < items) {
        seen.push(triple);
        sets.seen[user].add(item);
      }
      // Some pairs are in both, some users have no test item.
      if ((draw > 0.28 && draw < 0.3 && item < items) || (draw > 0.8 && user % 4 !== 3)) {
        test.push(triple);
        sets.test[user].add(item);
      }
    }
  }
  const candidates: Triple[] = [];
  const draw = testRandom(seed + 77);
  for (let user = 0; user < users; user++)
    for (let item = 0; item < items + 2; item++) {
      const row = { user: 10 * user, item: 5 * item, rating: 1 };
      if (draw() < 0.4 && user % 4 !== 2) candidates.push(row, ...(draw() < 0.1 ? [row] : []));
    }
  candidates.push({ user: 10 * users, item: 0, rating: 1 });
  const candidateSets = Array.from(
    { length: users },
    (_, user) =>
      new Set(
        candidates
          .filter((row) => row.user === 10 * user && row.item < 5 * items)
          .map(({ item }) => item / 5),
      ),
  );
  const strangers = Math.floor(random() * 3);
  for (let k = 0; k < strangers; k++)
    test.push({ user: -1 - k, item: 0, rating: 3 }, { user: -1 - k, item: 5, rating: 3 });
  const score = (user: number, item: number) =>
    Array.from(
      { length: RANK },
      (_, k) => userFactors[user * RANK + k] * itemFactors[item * RANK + k],
    ).reduce((sum, one) => sum + one, 0);
  return {
    problem: { score, users, items, ...sets, strangers, policy },
    seen,
    test,
    candidates,
    candidateSets,
    userFactors,
    itemFactors,
  };
}

export function modelOf(
  session: Session,
  { problem: { users, items }, userFactors, itemFactors }: Case,
  counts: { readonly userCounts?: Uint32Array; readonly itemCounts?: Uint32Array } = {},
): Model {
  return new Model({
    rank: RANK,
    users: { type: 'int32', values: Int32Array.from({ length: users }, (_, u) => 10 * u) },
    items: { type: 'int32', values: Int32Array.from({ length: items }, (_, v) => 5 * v) },
    userFactors,
    itemFactors,
    ...counts,
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session,
  });
}

export const rowsOf = (session: Session, rows: readonly Triple[]): Dataset =>
  session.from(ratingBatches([...rows], 7), ratingBatch([]).schema);

export const close = (
  found: Readonly<Record<string, number>>,
  expected: Readonly<Record<string, number>>,
  within: number,
) => {
  for (const [name, value] of Object.entries(expected))
    expect(Math.abs(found[name] - value), `${name}: ${found[name]} and ${value}`).toBeLessThanOrEqual(within);
};
