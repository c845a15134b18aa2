import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyText } from '../../../engine/keys/key-column.ts';
import type { PartitionRef } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { giveTo } from '../../../engine/run/run-steps.ts';
import { andThen } from '../../../engine/stream/logical-plan.ts';
import type { RatingBlock } from '../../../operators/ratings/ratings.ts';
import { readRatings } from '../../../operators/ratings/reading/read-ratings.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import type { DuplicatePolicy } from '../../../operators/tasks/tasks.ts';
import { sortedBlocks } from '../../support/blocks.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { sampleSize } from '../../support/deep.ts';
import { batchOf, randomRatings, ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';

const sessionWith = (workers: number) => cpuSession({ workers });

async function build(
  triples: readonly Triple[],
  options: { workers?: number; policy?: DuplicatePolicy; timestamps?: readonly number[] } = {},
) {
  const { workers = 2, policy = 'keep', timestamps } = options;
  const session = await sessionWith(workers);
  const batches = timestamps
    ? [
        batchOf({
          user: { type: 'int32', values: triples.map((row) => row.user) },
          item: { type: 'int32', values: triples.map((row) => row.item) },
          rating: { type: 'float32', values: triples.map((row) => row.rating) },
          timestamp: { type: 'float64', values: timestamps },
        }),
      ]
    : ratingBatches(triples, 137);
  const ctx = session.context();
  const columns = {
    user: 'user',
    item: 'item',
    rating: 'rating',
    ...(timestamps ? { timestamp: 'timestamp' } : {}),
  };
  const indexed = await readRatings(andThen(session.from(batches).plan, new SelectRatings(columns)), {}, ctx);
  return { indexed, blocks: await sortedBlocks(indexed, policy, ctx) };
}

/** (row, index, value) of every rating of a block, in its order. */
function entries(block: RatingBlock): [number, number, number][] {
  const all: [number, number, number][] = [];
  for (let row = 0; row < block.rows; row++)
    for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++)
      all.push([row, block.indices[k], block.values[k]]);
  return all;
}

const triple = fc.record({
  user: fc.integer({ min: -9, max: 9 }),
  item: fc.integer({ min: 0, max: 30 }),
  rating: fc.integer({ min: -4, max: 9 }).map((value) => value / 2),
});

describe('rating-blocks', () => {
  it('hold every rating once by user and once by item, ids and indices ascending', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(triple, { minLength: 1, maxLength: 300 }), async (rows) => {
        const { indexed, blocks } = await build(rows);
        const back = entries(blocks.byUser).map(
          ([u, v, r]) => `${keyText(indexed.users, u)} ${keyText(indexed.items, v)} ${r}`,
        );
        expect([...back].sort()).toEqual(rows.map((row) => `${row.user} ${row.item} ${row.rating}`).sort());
        const ascending = [...entries(blocks.byUser)].sort(
          (l, r) => l[0] - r[0] || l[1] - r[1] || l[2] - r[2],
        );
        expect(entries(blocks.byUser)).toEqual(ascending);
        expect(entries(blocks.byItem)).toEqual(
          ascending.map(([u, v, r]) => [v, u, r]).sort((l, r) => l[0] - r[0] || l[1] - r[1] || l[2] - r[2]),
        );
      }),
      { numRuns: sampleSize(12) },
    );
  });

  it('are the same bits for any order of rows and any number of workers', async () => {
    const rows = [...randomRatings(5, 300, 200, 5000), ...randomRatings(6, 300, 200, 500)];
    const first = (await build(rows, { workers: 1 })).blocks;
    for (const [workers, seed] of [
      [2, 11],
      [5, 12],
    ]) {
      const again = (await build(shuffled(rows, seed), { workers })).blocks;
      for (const side of ['byUser', 'byItem'] as const) {
        expect(again[side].offsets).toEqual(first[side].offsets);
        expect(again[side].indices).toEqual(first[side].indices);
        expect(again[side].values).toEqual(first[side].values);
      }
      expect(again.duplicates).toBe(first.duplicates);
    }
  });

  it('are right where keys of 32 bits hold few rows of a band, and columns are many more than ratings', async () => {
    const [users, items, count] = [5000, 3_000_000, 20_000];
    const random = new CounterRandom(3);
    const session = await sessionWith(2);
    const ctx = session.context();
    const rows = Array.from(
      { length: count },
      (_, k) =>
        [
          Math.floor(random.uniform(3 * k) * users),
          Math.floor(random.uniform(3 * k + 1) * items),
          1 + Math.floor(random.uniform(3 * k + 2) * 5),
        ] as const,
    );
    const counts = (side: 0 | 1, of: number) =>
      rows.reduce((all, row) => (all[row[side]]++, all), new Int32Array(of));
    const ids = (of: number) =>
      ({ type: 'int32', values: Int32Array.from({ length: of }, (_, i) => i) }) as const;
    const [codes, values] = ['codes', 'values'].map((part): PartitionRef => ({
      name: `wide/${part}`,
      partition: 0,
      version: 0,
    }));
    await giveTo(ctx, 'cpu', [
      [
        codes,
        {
          layout: 'coded-pairs',
          rows: count,
          columns: {
            users: Uint32Array.from(rows, ([user]) => user),
            items: Uint32Array.from(rows, ([, item]) => item),
          },
        },
      ],
      [
        values,
        {
          layout: 'values',
          rows: count,
          columns: { values: Float32Array.from(rows, ([, , rating]) => rating) },
        },
      ],
    ]);
    const indexed = {
      users: ids(users),
      items: ids(items),
      rows: count,
      userCounts: counts(0, users),
      itemCounts: counts(1, items),
      chunks: [{ rows: count, codes, values }],
    };
    const { byUser, byItem } = await sortedBlocks(indexed, 'keep', ctx);
    const ascending = [...rows].sort((l, r) => l[0] - r[0] || l[1] - r[1] || l[2] - r[2]);
    expect(entries(byUser)).toEqual(ascending);
    expect(entries(byItem)).toEqual(
      ascending.map(([u, v, r]) => [v, u, r]).sort((l, r) => l[0] - r[0] || l[1] - r[1] || l[2] - r[2]),
    );
  });

  describe('with repeated pairs', () => {
    const rows: Triple[] = [
      { user: 1, item: 5, rating: 4 },
      { user: 2, item: 5, rating: 1 },
      { user: 1, item: 5, rating: 2 },
      { user: 1, item: 6, rating: 3 },
      { user: 1, item: 5, rating: 3 },
    ];
    it.each([
      [
        'keep',
        [
          [0, 0, 2],
          [0, 0, 3],
          [0, 0, 4],
          [0, 1, 3],
          [1, 0, 1],
        ],
      ],
      [
        'mean',
        [
          [0, 0, 3],
          [0, 1, 3],
          [1, 0, 1],
        ],
      ],
      [
        'sum',
        [
          [0, 0, 9],
          [0, 1, 3],
          [1, 0, 1],
        ],
      ],
    ] as const)('%s gives', async (policy, expected) => {
      const { blocks } = await build(rows, { policy });
      expect(entries(blocks.byUser)).toEqual(expected);
      expect(blocks.byItem.ratings).toBe(expected.length);
      expect(blocks.duplicates).toBe(2);
    });

    it('last takes the latest, ties by the larger rating', async () => {
      const { blocks } = await build(rows, { policy: 'last', timestamps: [9, 1, 9, 1, 8] });
      expect(entries(blocks.byUser)).toEqual([
        [0, 0, 4],
        [0, 1, 3],
        [1, 0, 1],
      ]);
    });

    it('last without any repetition keeps all', async () => {
      const { blocks } = await build(rows.slice(1, 4), { policy: 'last', timestamps: [1, 2, 3] });
      expect(entries(blocks.byUser)).toEqual([
        [0, 0, 2],
        [0, 1, 3],
        [1, 0, 1],
      ]);
    });

    it('error counts them and names the first pair', async () => {
      await expect(build(rows, { policy: 'error' })).rejects.toThrow(
        '2 ratings repeat an earlier (user, item) pair; the first pair: user 1, item 5',
      );
    });
  });
});
