/** Users folded in on a GPU have the factors that a CPU gives them. */
import { describe, expect, it } from 'vitest';
import { ALS, Model, Session } from '../../index.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const rows = randomRatings(93, 300, 60, 4000);

describe.skipIf(noGpu)('fold-in on a GPU', () => {
  it.each([{ biases: true }, { implicitPrefs: true, alpha: 3, nonnegative: true }] as const)(
    'gives the factors of a CPU: %j',
    async (options) => {
      await using cpu = await Session.create({ device: 'cpu', workers: 1 });
      await using gpu = await Session.create({ device: 'gpu', workers: 1 });
      const model = await new ALS({ rank: 6, maxIter: 2, seed: 1, ...options }).fit(
        cpu.from(ratingBatches(rows)),
      );
      const { ids: users, values: userFactors, columns: rank } = model.userArrays;
      const { ids: items, values: itemFactors } = model.itemArrays;
      const keys = (ids: typeof users) => ({ type: 'int32', values: ids as Int32Array }) as const;
      const parts = {
        rank,
        users: keys(users),
        items: keys(items),
        userFactors,
        itemFactors,
        columns: model.columns,
        coldStartStrategy: 'nan',
        metadata: model.metadata,
      } as const;
      const folded = await Promise.all(
        [cpu, gpu].map((session) =>
          new Model({ ...parts, session }).foldIn(session.from(ratingBatches(rows))),
        ),
      );
      const [one, other] = folded.map((result) => result.model.userArrays.values);
      expect(one.length).toBe(users.length * rank);
      const most = other.reduce((so, value, k) => Math.max(so, Math.abs(value - one[k])), 0);
      expect(most).toBeLessThan(1e-3);
    },
  );
});
