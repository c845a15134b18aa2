/**
 * Choose rank and λ by cross-validation: each combination is trained on two thirds of the ratings and
 * measured on the other third, three times; the best one is then trained on all of them.
 *
 *   npm run build && npx node examples/04-cross-validate.ts
 */
import { join } from 'node:path';
import { ALS, CrossValidator, paramGrid, Session } from 'factorflow';

const session = await Session.create();
const ratings = session.read.parquet(join(import.meta.dirname, 'data/movietweetings-100k/ratings.parquet'));

// The last tenth by time is held out, since cross-validation measures ratings of the same time as those in
// training.
const [past, future] = await ratings.timeSplit([0.9, 0.1]);

const validator = new CrossValidator({
  estimator: (params) => new ALS({ maxIter: 8, seed: 1, ...params }),
  grid: paramGrid({ rank: [4, 8], regOffset: [5, 10] }),
  numFolds: 3,
  seed: 42,
});

const { best, model } = await validator.fit(past, {
  onEvent: (event) => {
    if (event.type === 'note') console.log(event.text);
  },
});
console.log(
  `best: rank ${best.params.rank}, regOffset ${best.params.regOffset}, RMSE ${best.rmse.toFixed(4)} over ${best.folds.length} folds`,
);

const { rmse, pairs, coldPairs } = await model.evaluate(future);
console.log(
  `RMSE ${rmse.toFixed(4)} on the ${pairs - coldPairs} later ratings whose user and film are known; ${coldPairs} are not`,
);
await session.close();
