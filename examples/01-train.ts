/**
 * Train a model from Parquet ratings, see its error on held-out ratings, recommend, and save it.
 *
 *   npm run build && npx node examples/01-train.ts
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALS, Session } from 'factorflow';

const session = await Session.create();

const ratings = session.read.parquet(join(import.meta.dirname, 'data/movietweetings-100k/ratings.parquet'));
const [train, test] = ratings.randomSplit([0.9, 0.1], { seed: 42 });

const als = new ALS({ rank: 16, seed: 1 });
console.log(String(await als.plan(train)));

const model = await als.fit(train, {
  validation: test,
  onEvent: (event) => {
    if (event.type === 'iteration')
      console.log(`iteration ${event.iteration}: test RMSE ${event.testRmse?.toFixed(4)}`);
  },
});

const { rmse, mae, pairs, coldPairs } = await model.evaluate(test);
console.log(
  `RMSE ${rmse.toFixed(4)}, MAE ${mae.toFixed(4)} over ${pairs - coldPairs} pairs; ${coldPairs} with a user or item that was not trained on`,
);

for await (const batch of model.recommendForUsers([26], 3, { exclude: train }))
  console.log(batch.toArray().map(String));

const directory = join(tmpdir(), 'factorflow-example-model');
await model.save(directory, { overwrite: true });
console.log(`saved to ${directory}`);
await session.close();
