/**
 * Ten recommendations for each of MovieLens-20M's 138,493 users from its 27,278 items, without the training
 * ratings; rank 64, with and without biases. Measured from the call to the last batch: reading and sorting
 * the exclusions, the search, and the batches themselves.
 *
 *     node bench/serving/recommend.ts FOLDER        FOLDER: written by `factorflow generate --preset movielens20m`
 *
 * The reference, the Python library implicit 0.7 on a similar machine and data set, reaches 16,400 users/s;
 * it is not measured here.
 */
import { join } from 'node:path';
import { ALS, Session } from '../../index.ts';
import { describeMachine } from '../machine.ts';

const folder = process.argv[2];
if (folder === undefined) throw new Error('name the folder of the data set');
console.log(
  `${describeMachine()}, 2 workers\n\nbiases  users/s (median of 3)  users/s without the exclusions' reading`,
);
await using session = await Session.create({ workers: 2 });
const train = session.read.parquet(join(folder, 'train'));
for (const biases of [false, true]) {
  const model = await new ALS({ rank: 64, maxIter: 4, regParam: 0.05, seed: 1, biases }).fit(train);
  const rates: { all: number; search: number }[] = [];
  for (let run = 0; run < 3; run++) {
    const start = performance.now();
    let first = 0;
    for await (const batch of model.recommendForAllUsers(10, { exclude: train }))
      if (first === 0 && batch.numRows > 0) first = performance.now();
    const end = performance.now();
    rates.push({
      all: (1000 * model.userCount) / (end - start),
      search: (1000 * model.userCount) / (end - first),
    });
  }
  const median = (of: 'all' | 'search') =>
    rates
      .map((rate) => rate[of])
      .sort((left, right) => left - right)[1]
      .toFixed(0);
  console.log(`${String(biases).padEnd(7)} ${median('all').padEnd(22)} ${median('search')}`);
}
