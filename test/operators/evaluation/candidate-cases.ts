/** Random factors with candidates, and their metrics by definition. */
import { type Dataset, Model, Session } from '../../../index.ts';
import { ratingBatch, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';

export const RANK = 3;

export interface Case {
  readonly users: number;
  readonly items: number;
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
  readonly seen: readonly Triple[];
  readonly test: readonly Triple[];
  readonly candidates: readonly Triple[];
}

/**
 * Whole numbers as factors, so that ties are common. Some candidates are seen, positives, repeated, or
 * unknown; some users have none.
 */
export function randomCase(seed: number, users: number, items: number): Case {
  const random = testRandom(seed + 1);
  const whole = () => Math.floor(random() * 4) - 1;
  const [userFactors, itemFactors] = [
    Float32Array.from({ length: users * RANK }, whole),
    Float32Array.from({ length: items * RANK }, whole),
  ];
  const [seen, test, candidates]: Triple[][] = [[], [], []];
  for (let user = 0; user < users; user++) {
    for (let item = 0; item < items + 2; item++) {
      const row = { user, item, rating: 1 };
      const draw = random();
      if (draw < 0.3 && item < items) seen.push(row);
      else if (draw > 0.8 && user % 5 !== 4) test.push(row);
      if (random() < 0.4 && user % 4 !== 3) candidates.push(row);
      if (random() < 0.05) candidates.push(row);
    }
  }
  candidates.push({ user: users + 7, item: 0, rating: 1 });
  return { users, items, userFactors, itemFactors, seen, test, candidates };
}

export const dataset = (session: Session, rows: readonly Triple[]): Dataset =>
  session.from(ratingBatches([...rows], 7), ratingBatch([]).schema);

export function modelOf(session: Session, { users, items, userFactors, itemFactors }: Case): Model {
  const ids = (count: number) =>
    ({ type: 'int32', values: Int32Array.from({ length: count }, (_, id) => id) }) as const;
  return new Model({
    rank: RANK,
    users: ids(users),
    items: ids(items),
    userFactors,
    itemFactors,
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session,
  });
}
