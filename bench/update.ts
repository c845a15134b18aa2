/**
 * Updating a model compared with training it again: ALS on nine tenths of the ratings, `model.update` by SGD
 * with the last tenth, and ALS on all of them. Seconds from the call to the model, including reading the
 * ratings.
 *
 *     node bench/update.ts FOLDER [rank = 32]        FOLDER: written by `factorflow generate --preset movielens20m`
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALS, Session } from '../index.ts';
import { describeMachine } from './machine.ts';

const [folder, rank = '32'] = process.argv.slice(2);
if (folder === undefined) throw new Error('name the folder of the data set');
await using session = await Session.create({ device: 'cpu' });
const all = session.read.parquet(join(folder, 'train'));
const test = session.read.parquet(join(folder, 'test'));
const [old, later] = all.randomSplit([0.9, 0.1], { seed: 1 });
// New ratings are in a separate file.
const scratch = await mkdtemp(join(tmpdir(), 'factorflow-bench-'));
await later.write.parquet(join(scratch, 'later'));
const fresh = session.read.parquet(join(scratch, 'later'));
const als = new ALS({ rank: Number(rank), maxIter: 10, regParam: 0.05, seed: 1 });
const timed = async <Result>(work: () => Promise<Result>) => {
  const start = performance.now();
  return { result: await work(), seconds: (performance.now() - start) / 1000 };
};
console.log(`${describeMachine()}, rank ${rank}, ALS with 10 iterations\n`);
const first = await timed(() => als.fit(old));
const updated = await timed(() => first.result.update(fresh));
const anew = await timed(() => als.fit(all));
for (const [name, { result, seconds }] of [
  ['first model, nine tenths', first],
  ['updated with the last tenth', updated],
  ['trained anew on all', anew],
] as const) {
  const { rmse, coldPairs } = await result.evaluate(test);
  console.log(
    `${name.padEnd(28)} ${seconds.toFixed(2).padStart(7)} s   test RMSE ${rmse.toFixed(4)}, ${coldPairs} cold pairs`,
  );
}
await rm(scratch, { recursive: true });
