import fc from 'fast-check';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CapacityError, UsageError } from '../../engine/errors.ts';
import { anyShape } from '../../synthetic/any-shape.ts';
import { generateDataset } from '../../synthetic/dataset/generate-dataset.ts';
import { buildRatingTables, degreeSequence } from '../../synthetic/ratings/rating-tables.ts';
import { generateRatings } from '../../synthetic/ratings/rating-generator.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();

const sizes = fc
  .tuple(
    fc.integer({ min: 1, max: 3000 }),
    fc.integer({ min: 1, max: 3000 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.boolean(),
  )
  .map(([users, items, share, sparse]) => {
    const pairs = users * items;
    return {
      users,
      items,
      ratings: Math.max(1, Math.floor(sparse ? Math.pow(pairs, share) : pairs * share)),
    };
  });

describe('a data set of a given size', () => {
  it('has degrees that sum to its ratings, none above its items, from one rating to a full matrix', () => {
    fc.assert(
      fc.property(sizes, (size) => {
        const degrees = degreeSequence(size.users, size.ratings, anyShape(size).degrees);
        expect(degrees.reduce((sum, degree) => sum + degree, 0)).toBe(size.ratings);
        expect(Math.max(...degrees)).toBeLessThanOrEqual(size.items);
        expect(Math.min(...degrees)).toBeGreaterThanOrEqual(0);
      }),
      {
        numRuns: 100,
        examples: [
          [{ users: 1, items: 1, ratings: 1 }],
          [{ users: 1, items: 72, ratings: 72 }],
          [{ users: 3000, items: 3000, ratings: 9_000_000 }],
          [{ users: 2999, items: 7, ratings: 20_992 }],
          [{ users: 5000, items: 1, ratings: 5000 }],
        ],
      },
    );
  });

  it('has each pair once', () => {
    for (const size of [
      { users: 20, items: 30, ratings: 600 },
      { users: 20, items: 30, ratings: 599 },
      { users: 100, items: 50, ratings: 1000 },
    ]) {
      const pairs = new Set<number>();
      for (const { batch } of generateRatings(buildRatingTables(anyShape(size), 3))) {
        const [users, items] = batch.data.children.map(({ values }) => values as Int32Array);
        for (let row = 0; row < batch.numRows; row++) pairs.add(users[row] * size.items + items[row]);
      }
      expect(pairs.size).toBe(size.ratings);
    }
  });

  it('is written with its description', async () => {
    const size = { users: 500, items: 200, ratings: 30_000 };
    const { description } = await generateDataset({
      preset: anyShape(size),
      seed: 5,
      output: join(folder, 'custom'),
      workers: 1,
    });
    expect(description).toMatchObject({
      preset: 'custom',
      users: 500,
      items: 200,
      train: 27_000,
      test: 3000,
    });
  });
});

describe('an impossible size is refused', () => {
  it.each([
    [{ users: 10, items: 5, ratings: 51 }, /51 ratings do not fit: 10 users and 5 items have 50 pairs/],
    [{ users: 0, items: 5, ratings: 5 }, /users must be a whole number from 1, got 0/],
    [{ users: 10, items: 2.5, ratings: 5 }, /items must be a whole number from 1, got 2\.5/],
    [{ users: 10, items: 5, ratings: Number.NaN }, /ratings must be a whole number from 1, got NaN/],
    [{ users: 2 ** 31, items: 5, ratings: 5 }, /2,147,483,648 users are too many/],
  ])('%j', (size, message) => {
    expect(() => anyShape(size)).toThrow(message);
    expect(() => anyShape(size)).toThrow(UsageError);
  });

  it('as is one whose tables exceed the memory, before anything is written', async () => {
    const output = join(folder, 'huge');
    const generating = generateDataset({
      preset: anyShape({ users: 2 ** 31 - 1, items: 2 ** 31 - 1, ratings: 1e12 }),
      output,
      workers: 256,
    });
    await expect(generating).rejects.toThrow(CapacityError);
    await expect(generating).rejects.toThrow(
      /the tables of 2,147,483,647 users and 2,147,483,647 items take/,
    );
    expect(readdirSync(folder)).not.toContain('huge');
  });
});
