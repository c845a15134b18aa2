import type { RecordBatch } from 'apache-arrow';
import { randomRatings, type Triple } from './ratings.ts';

/** Random ratings 1, 2, 3 of distinct pairs. */
export function distinctRatings(seed: number, users: number, items: number, count: number): Triple[] {
  const found = new Map<string, Triple>();
  for (const row of randomRatings(seed, users, items, count))
    found.set(`${row.user} ${row.item}`, { ...row, rating: 1 + (Math.round(row.rating * 7) % 3) });
  return [...found.values()];
}

/** Factor rows by external id. */
export function factorsById(batch: RecordBatch): Map<number, Float64Array> {
  const ids = batch.getChildAt(0)?.toArray() as Int32Array;
  const values = batch.data.children[1].children[0].values as Float32Array;
  const rank = values.length / ids.length;
  return new Map([...ids].map((id, i) => [id, Float64Array.from(values.subarray(i * rank, (i + 1) * rank))]));
}
