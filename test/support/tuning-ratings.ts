import { makeVector, type RecordBatch, Table } from 'apache-arrow';
import { CounterRandom } from '../../engine/random.ts';

/** Ratings of a model of rank 2 with noise, by pairs at random; users and items from `first` on. */
export function ratingsBatch(users: number, items: number, count: number, first = 0): RecordBatch {
  const random = new CounterRandom(11);
  const [user, item, rating] = [new Int32Array(count), new Int32Array(count), new Float32Array(count)];
  const feature = (kind: number, row: number, k: number) => random.derive(kind).uniform(2 * row + k) - 0.5;
  for (let at = 0; at < count; at++) {
    const [u, v] = [
      Math.floor(random.uniform(3 * at) * users),
      Math.floor(random.uniform(3 * at + 1) * items),
    ];
    user[at] = first + u;
    item[at] = first + v;
    rating[at] =
      3 +
      4 * (feature(1, u, 0) * feature(2, v, 0) + feature(1, u, 1) * feature(2, v, 1)) +
      0.3 * (random.uniform(3 * at + 2) - 0.5);
  }
  return new Table({ user: makeVector(user), item: makeVector(item), rating: makeVector(rating) }).batches[0];
}
