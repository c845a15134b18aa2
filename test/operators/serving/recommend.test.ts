/**
 * The search for the best items leaves most of them out by their norms: it must find what brute force finds.
 */
import { describe, expect, it } from 'vitest';
import { keysOfIds } from '../../../engine/keys/find-id.ts';
import { amongAll, Recommend } from '../../../operators/serving/recommend.ts';
import { testRandom } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

function randomModel(seed: number, users: number, items: number, rank: number, spread: number) {
  const random = testRandom(seed);
  const vectors = (rows: number) => {
    const all = new Float32Array(rows * rank);
    for (let row = 0; row < rows; row++) {
      const scale = Math.exp(spread * (random() - 0.5)) * (random() < 0.05 ? 0 : 1);
      for (let k = 0; k < rank; k++) all[row * rank + k] = scale * (random() - 0.4);
    }
    return all;
  };
  const ids = (count: number) =>
    keysOfIds(
      Array.from({ length: count }, (_, i) => 3 * i + 1),
      'int32',
    );
  return {
    rank,
    users: ids(users),
    items: ids(items),
    userFactors: vectors(users),
    itemFactors: vectors(items),
  };
}

describe('recommend', () => {
  it.each([
    [1, 30, 5000, 8, 6],
    [2, 600, 2500, 16, 3],
    [3, 5, 9, 3, 1],
  ])('finds the best of all items with any norms (seed %i)', async (seed, users, items, rank, spread) => {
    const model = randomModel(seed, users, items, rank, spread);
    const n = 7;
    const found = new Map<number, number[]>();
    for await (const batch of session.source(
      new Recommend(
        model,
        { n, columns: { user: 'user', item: 'item', prediction: 'score' } },
        amongAll(model, n),
      ),
    )) {
      for (const row of batch.toArray()) found.set(row.user, [...(found.get(row.user) ?? []), row.score]);
    }
    expect(found.size).toBe(users);
    for (let u = 0; u < users; u++) {
      const scores = Array.from({ length: items }, (_, v) => {
        let dot = 0;
        for (let k = 0; k < rank; k++)
          dot += model.userFactors[u * rank + k] * model.itemFactors[v * rank + k];
        return dot;
      }).sort((left, right) => right - left);
      const given = found.get(3 * u + 1) as number[];
      expect(given.length).toBe(Math.min(n, items));
      given.forEach((score, i) =>
        expect(Math.abs(score - scores[i])).toBeLessThanOrEqual(1e-5 * (1 + Math.abs(scores[0]))),
      );
    }
  });

  it.each([0, 1])('orders equal scores by item id, for any norms (users all %i)', async (value) => {
    const { items, ...model } = randomModel(6, 3, 3000, 2, 4);
    const itemFactors = Float32Array.from(
      { length: 6000 },
      (_, k) => (k % 2 === 0 ? 1 : -1) * (1 + ((k >> 1) % 17)),
    );
    const ids: number[] = [];
    const alike = { ...model, items, itemFactors, userFactors: new Float32Array(6).fill(value) };
    const columns = { user: 'user', item: 'item', prediction: 'score' };
    for await (const batch of session.source(new Recommend(alike, { n: 5, columns }, amongAll(alike, 5)))) {
      for (const row of batch.toArray()) ids.push(row.item);
    }
    expect(ids).toEqual([1, 4, 7, 10, 13, 1, 4, 7, 10, 13, 1, 4, 7, 10, 13]);
  });
});
