/** Users folded in on a GPU have the factors that a CPU gives them. */
import { describe, expect, it } from 'vitest';
import { ALS, Model, Session } from '../../index.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const rows = randomRatings(93, 300, 60, 4000);

describe.skipIf(noGpu)('fold-in on a GPU', () => {
  it.each([
    [{ biases: true }, 'attributes of nobody'],
    [{ biases: true }, 'attributes'],
    [{ implicitPrefs: true, alpha: 3, nonnegative: true }, 'attributes of nobody'],
    [{ implicitPrefs: true, alpha: 3 }, 'attributes'],
  ] as const)('gives users and items the factors of a CPU: %j, %s', async (options, drawn) => {
    await using cpu = await Session.create({ device: 'cpu', workers: 1 });
    await using gpu = await Session.create({ device: 'gpu', workers: 1 });
    const sideOf = (side: 'user' | 'item') => ({
      data: cpu.fromRows(
        [...new Set(rows.map((row) => row[side]))].map((id) => ({ [side]: id, kind: `k${id % 3}` })),
      ),
      id: side,
    });
    const attributes =
      drawn === 'attributes' ? { userAttributes: sideOf('user'), itemAttributes: sideOf('item') } : {};
    const model = await new ALS({ rank: 6, maxIter: 2, seed: 1, ...options, ...attributes }).fit(
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
      attributes: model.attributes,
      userCounts: model.userCounts,
      itemCounts: model.itemCounts?.fill(0, 0, 9),
    } as const;
    const folded = await Promise.all(
      [cpu, gpu].map((session) => new Model({ ...parts, session }).foldIn(session.from(ratingBatches(rows)))),
    );
    const [one, other] = folded.map((result) => result.model.userArrays.values);
    expect(one.length).toBe(users.length * rank);
    const most = other.reduce((so, value, k) => Math.max(so, Math.abs(value - one[k])), 0);
    expect(most).toBeLessThan(1e-3);
    const solved = await Promise.all(
      [cpu, gpu].map((session) =>
        new Model({ ...parts, session }).foldInItems(session.from(ratingBatches(rows))),
      ),
    );
    expect(solved.map((result) => result.items)).toEqual([9, 9]);
    const [first, second] = solved.map((result) => result.model.itemArrays.values);
    first.forEach((value, k) => expect(Math.abs(value - second[k])).toBeLessThan(1e-3));
  });
});
