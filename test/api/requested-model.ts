/** A small model and readers of its lists, for the tests of serving. */
import type { RecordBatch } from 'apache-arrow';
import { ALS, type Dataset, Model } from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { randomRatings, ratingBatches, testRandom } from '../support/ratings.ts';

export const rows = randomRatings(61, 60, 80, 1500);
export const session = await cpuSession();
export const model = await new ALS({ rank: 6, regParam: 0.05, maxIter: 3, seed: 2, biases: true }).fit(
  session.from(ratingBatches(rows)),
);

type Row = Readonly<Record<string, number | bigint | string | boolean>>;

export async function rowsOf(batches: Dataset | AsyncIterable<RecordBatch>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const batch of batches) for (const row of batch.toArray()) all.push(row.toJSON());
  return all;
}

/** The rows of the batch path, user by user. */
export async function listsOf(
  all: Dataset,
  [user, item, value] = ['user', 'item', 'prediction'],
): Promise<Map<unknown, [unknown, unknown][]>> {
  const lists = Map.groupBy(await rowsOf(all), (row): unknown => row[user]);
  return new Map([...lists].map(([id, own]) => [id, own.map((row) => [row[item], row[value]])]));
}

export const users = [...new Set(rows.map((row) => row.user))].sort((left, right) => left - right);
export const itemsOf = (user: number) => rows.filter((row) => row.user === user).map((row) => row.item);
export const exact = (): Dataset => session.from(ratingBatches(rows));

/** A model of two users and some items of rank 2. */
export function partsOf(items: number): ConstructorParameters<typeof Model>[0] {
  const random = testRandom(5);
  const factors = (count: number) => Float32Array.from({ length: 2 * count }, () => random() - 0.5);
  return {
    rank: 2,
    users: { type: 'int32', values: Int32Array.of(1, 4) },
    items: { type: 'int32', values: Int32Array.from({ length: items }, (_, i) => 2 * i) },
    userFactors: factors(2),
    itemFactors: factors(items),
    columns: { ...model.columns },
    coldStartStrategy: 'nan',
    session,
  };
}
