import type { RecordBatch } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { ALS, type Model, type ProgressEvent } from '../../index.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

const rows = randomRatings(51, 70, 50, 1800);
const session = await cpuSession();

const fit = (biases: boolean) =>
  new ALS({ rank: 4, regParam: 0.05, maxIter: 4, seed: 2, biases }).fit(session.from(ratingBatches(rows)));
const plain = await fit(false);
const models = [plain, await fit(true)];

async function rowsOf(batches: AsyncIterable<RecordBatch>): Promise<Record<string, number>[]> {
  const all: Record<string, number>[] = [];
  for await (const batch of batches) for (const row of batch.toArray()) all.push(row.toJSON());
  return all;
}

/** Neighbours by brute force from a side's factors. */
function expected(
  side: Model['itemFactors'],
  id: number,
  n: number,
  features: number,
  cosine: boolean,
): [number, number][] {
  const ids = Array.from(side.data.children[0].values as Int32Array);
  const values = side.data.children[1].children[0].values as Float32Array;
  const rank = values.length / ids.length;
  const vector = (i: number) => Array.from(values.subarray(i * rank, i * rank + features));
  const own = vector(ids.indexOf(id));
  const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const score = (other: number[]) =>
    dot(own, other) / (cosine ? Math.hypot(...own) * Math.hypot(...other) : 1);
  return ids
    .map((other, i): [number, number] => [other, score(vector(i))])
    .filter(([other]) => other !== id)
    .sort((left, right) => right[1] - left[1])
    .slice(0, n);
}

describe.each(models)('similar items and users', (model) => {
  it.each(['cosine', 'dot'] as const)(
    'by %s are those of brute force, best first, without the item itself',
    async (similarity) => {
      const ids = [rows[0].item, rows[7].item];
      const found = await rowsOf(model.similarItems(ids, 5, { similarity }));
      for (const id of new Set(ids)) {
        const neighbours = found.filter((row) => row.item === id);
        const wanted = expected(model.itemFactors, id, 5, 4, similarity === 'cosine');
        expect(neighbours.map((row) => row.rank)).toEqual([1, 2, 3, 4, 5]);
        neighbours.forEach((row, i) => expect(row.similarity).toBeCloseTo(wanted[i][1], 4));
        expect(neighbours.map((row) => row.similarItem)).toEqual(wanted.map(([other]) => other));
      }
    },
  );
});

describe('similar', () => {
  it('gives items for an item and users for a user, and marks unknown ones', async () => {
    const [{ user, item }] = rows;
    const items = await plain.similar(item, 2);
    expect(items).toMatchObject({ item, known: true, similar: [{ item: expect.any(Number) }, {}] });
    const users = await plain.similar(user, 1, { side: 'user' });
    expect(users).toMatchObject({ user, known: true, similar: [{ user: expect.any(Number) }] });
    expect(await plain.similar(77_777, 3)).toEqual({ item: 77_777, known: false, similar: [] });
    expect(await plain.similar('x', 3, { side: 'user' })).toEqual({ user: 'x', known: false, similar: [] });
  });

  it('leaves unknown ids out of batches, with a warning', async () => {
    const known = [...new Set(rows.map(({ item }) => item))];
    const many = [...known, ...Array.from({ length: 300 }, (_, at) => 90_000 + at)];
    for (const [lists, count, text] of [
      [plain.similarItems([77_777, known[0]], 3), 1, '1 of 2 items is unknown'],
      [plain.similarItems(many, 3), known.length, `300 of ${many.length} items are unknown`],
      [plain.similarUsers([77_777], 3), 0, '1 of 1 user is unknown'],
      [plain.recommendForItems([known[0], 77_777], 3), 1, '1 of 2 items is unknown'],
    ] as const) {
      const warnings: string[] = [];
      const onEvent = (event: ProgressEvent) => {
        if (event.type === 'warning') warnings.push(event.text);
      };
      expect(await rowsOf(await lists.stream({ onEvent }))).toHaveLength(3 * count);
      expect(warnings).toEqual([expect.stringContaining(`${text} to the model and get`)]);
    }
  });
});
