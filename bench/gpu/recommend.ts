/**
 * The ten best items of every user of a saved model, as Arrow batches, from a model in memory: the first time with the
 * compiling of kernels, then without.
 *
 *     node bench/gpu/recommend.ts MODEL
 */
import { Model, Session } from '../../index.ts';

await using session = await Session.create({ device: 'gpu' });
console.log(session.device.description);
const model = await Model.load(session, process.argv[2]);
for (let run = 0; run < 4; run++) {
  const start = performance.now();
  let rows = 0;
  for await (const batch of model.recommendForAllUsers(10)) rows += batch.numRows;
  console.log(`top 10 for ${model.userCount} users, ${rows} rows: ${(performance.now() - start).toFixed(0)} ms`);
}
