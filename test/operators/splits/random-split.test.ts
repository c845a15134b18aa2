import { Bool, Field, Int32, type RecordBatch, Schema } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { DataError, UsageError } from '../../../index.ts';
import { pairColumns } from '../../../operators/ratings/rows/columns.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { batchOf, randomRatings, ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';

const session = await cpuSession();

const rows = randomRatings(3, 200, 150, 6000);

async function split(triples: readonly Triple[], seed: number): Promise<string[][]> {
  const parts = session.from(ratingBatches(triples, 700)).randomSplit([0.8, 0.1, 0.1], { seed });
  return await Promise.all(parts.map(async (part) => (await rowsOf(part)).sort()));
}

async function rowsOf(batches: AsyncIterable<RecordBatch>): Promise<string[]> {
  const all: string[] = [];
  for await (const batch of batches)
    for (const row of batch.toArray())
      all.push(
        JSON.stringify(row.toJSON(), (_, value: unknown) =>
          typeof value === 'bigint' ? String(value) : value,
        ),
      );
  return all;
}

describe('random-split', () => {
  it('gives disjoint parts of about the asked sizes that cover everything', async () => {
    const parts = await split(rows, 1);
    expect(parts.flat().sort()).toEqual((await rowsOfAll()).sort());
    expect(parts[0].length / rows.length).toBeGreaterThan(0.77);
    expect(parts[0].length / rows.length).toBeLessThan(0.83);
    expect(parts[1].length / rows.length).toBeGreaterThan(0.08);
  });

  it("doesn't depend on the order of rows, and does on the seed", async () => {
    const parts = await split(rows, 1);
    expect(await split(shuffled(rows, 9), 1)).toEqual(parts);
    expect(await split(rows, 2)).not.toEqual(parts);
  });

  it('keeps repetitions of a pair together, and every column of a row', async () => {
    const values = Array.from({ length: 400 }, (_, i) => i % 40);
    const batch = batchOf({
      name: { type: 'utf8', values: values.map((value) => `n${value}`) },
      score: { type: 'float64', values },
      item: { type: 'int64', values: values.map(BigInt) },
    });
    const [left, right] = await Promise.all(
      session.from([batch]).randomSplit([1, 1], { seed: 5 }).map(rowsOf),
    );
    const names = (part: string[]) => new Set(part.map((row) => JSON.parse(row).name as string));
    expect(left.length + right.length).toBe(400);
    expect([...names(left)].some((name) => names(right).has(name))).toBe(false);
    for (const row of left) expect(JSON.parse(row).name).toBe(`n${JSON.parse(row).score}`);
  });

  it.each(['items', 'users'] as const)('holds %s out whole, about the asked share of them', async (whole) => {
    const id = (text: string) => JSON.parse(text)[whole === 'items' ? 'item' : 'user'] as number;
    const partsOf = async (triples: readonly Triple[]) =>
      Promise.all(
        session
          .from(ratingBatches(triples, 700))
          .randomSplit([0.7, 0.3], { seed: 2, whole })
          .map(async (part) => (await rowsOf(part)).sort()),
      );
    const parts = await partsOf(rows);
    const [train, test] = parts.map((part) => new Set(part.map(id)));
    expect(parts.flat().sort()).toEqual((await rowsOfAll()).sort());
    expect([...test].filter((one) => train.has(one))).toEqual([]);
    expect(test.size / (train.size + test.size)).toBeGreaterThan(0.2);
    expect(test.size / (train.size + test.size)).toBeLessThan(0.4);
    expect(await partsOf(shuffled(rows, 3))).toEqual(parts);
    expect(() => session.from(ratingBatches(rows)).randomSplit([1, 1], { whole: 'item' as never })).toThrow(
      /whole of randomSplit must be one of items, users, got "item"/,
    );
  });

  it('refuses weights that are not positive', async () => {
    expect(() => session.from(ratingBatches(rows)).randomSplit([1, 0])).toThrow(
      'split weights must be positive',
    );
  });

  it('folds into k disjoint test sets that cover everything, each beside its complement', async () => {
    const folds = session.from(ratingBatches(shuffled(rows, 4), 700)).kFold(5, { seed: 3 });
    const all = (await rowsOfAll()).sort();
    const tests = await Promise.all(folds.map(async ({ test }) => rowsOf(test)));
    expect(tests.flat().sort()).toEqual(all);
    for (const [i, { train }] of folds.entries())
      expect([...(await rowsOf(train)), ...tests[i]].sort()).toEqual(all);
    const parts = session.from(ratingBatches(rows)).randomSplit([1, 1, 1, 1, 1], { seed: 3 });
    expect((await rowsOf(parts[2])).sort()).toEqual(tests[2].sort());
  });

  it.each([1, 2.5])('refuses %s folds', async (k) => {
    expect(() => session.from(ratingBatches(rows)).kFold(k)).toThrow(
      `the number of folds must be a whole number from 2 to 1,000, got ${k}`,
    );
  });

  async function rowsOfAll(): Promise<string[]> {
    return await rowsOf(session.from(ratingBatches(rows)));
  }
});

describe('the columns of a pair', () => {
  const schemaOf = (...names: string[]) =>
    batchOf(
      Object.fromEntries(
        names.map((name) => [name, { type: name === 'rating' ? 'float32' : 'int32', values: [1] }]),
      ),
    ).schema;

  it('are asked for where they cannot be told', () => {
    const question =
      'which columns are user and item? There are: timestamp (Int32), who (Int32), what (Int32), rating (Float32); name them: randomSplit(weights, { userCol, itemCol })';
    const schema = schemaOf('timestamp', 'who', 'what', 'rating');
    expect(() => pairColumns(schema, {})).toThrow(question);
    expect(() => pairColumns(schema, { userCol: 'who' })).toThrow(question);
    expect(() => pairColumns(schema, { userCol: 'nope' })).toThrow(
      'there is no column "nope"; there are: timestamp (Int32), who (Int32), what (Int32), rating (Float32)',
    );
    expect(() => pairColumns(schema, { itemCol: 'nope' })).toThrow(DataError);
    expect(() => pairColumns(schema, { userCol: 'who', itemCol: 'who' })).toThrow(UsageError);
    // A float may be an id, but only where it is named.
    expect(pairColumns(schema, { userCol: 'who', itemCol: 'rating' })).toEqual(['who', 'rating']);
    const flags = new Schema([new Field('who', new Int32()), new Field('flag', new Bool())]);
    expect(() => pairColumns(flags, { userCol: 'who', itemCol: 'flag' })).toThrow(
      'ids must be whole numbers, text, dates or UUIDs, but the type is Bool',
    );
  });
});
