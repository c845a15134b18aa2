/** Users and items of reports. */
import { describe, expect, it } from 'vitest';
import { itemMap } from '../../api/reports/item-map.ts';
import { sampleUsers } from '../../api/reports/sample-users.ts';
import { ALS } from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';

/** User u has u + 1 ratings, of items 0 to u; item u has the highest one. */
const rows = Array.from({ length: 20 }, (_, user) =>
  Array.from({ length: user + 1 }, (__, item) => ({
    user,
    item,
    rating: item === user ? 5 : 1 + ((user + item) % 3),
  })),
).flat();

const session = await cpuSession();
const model = await new ALS({ rank: 3, maxIter: 2 }).fit(session.fromRows(rows));

describe('users of a report', () => {
  it('have many, some and few ratings, best first, and items that they have not rated', async () => {
    const samples = await sampleUsers(model, session.fromRows(rows), { n: 3, onBadRows: 'error' });
    expect(samples.map(({ user, ratings }) => [user, ratings])).toEqual([
      [18, 19],
      [17, 18],
      [9, 10],
    ]);
    for (const { user, rated, recommended } of samples) {
      expect(rated[0]).toEqual({ item: user, rating: 5 });
      expect(rated.length).toBe(3);
      expect(recommended.every(({ item }) => Number(item) > Number(user))).toBe(true);
      expect(recommended.length).toBe(Math.min(3, 19 - Number(user)));
    }
  });

  it('are none where the ratings can be read only once', async () => {
    const samples = await sampleUsers(model, session.fromRows(rows.values()), { n: 3, onBadRows: 'error' });
    expect(samples).toEqual([]);
  });
});

describe('the map of items', () => {
  it('has the items with the most ratings, in order', async () => {
    const map = itemMap(model, 5);
    expect(map?.items.map(({ item, ratings }) => [item, ratings])).toEqual([
      [0, 20],
      [1, 19],
      [2, 18],
      [3, 17],
      [4, 16],
    ]);
    expect(map?.share).toBeGreaterThan(0.5);
  });

  it('is a line at rank 1', async () => {
    const map = itemMap(await new ALS({ rank: 1, maxIter: 2 }).fit(session.fromRows(rows)), 100);
    expect(map?.items).toHaveLength(20);
    expect(map?.items.every(({ y }) => y === 0)).toBe(true);
    expect(map?.share).toBeCloseTo(1, 9);
  });
});
