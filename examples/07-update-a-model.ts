/**
 * Keep a model current: ALS trains it once, and SGD adds later ratings, also those of new users and films,
 * for a small part of the cost of training again.
 *
 *   npm run build && npx node examples/07-update-a-model.ts
 */
import { join } from 'node:path';
import { ALS, Session } from 'factorflow';

const session = await Session.create({ device: 'cpu' });
const ratings = session.read.parquet(join(import.meta.dirname, 'data/movietweetings-100k/ratings.parquet'));
const [known, test] = ratings.randomSplit([0.9, 0.1], { seed: 42 });

// Nine tenths of the known ratings stand for the first ones, and the others for later ones.
const [first, later] = known.randomSplit([0.9, 0.1], { seed: 7 });
const als = new ALS({ rank: 8, seed: 1 });
const model = await als.fit(first);

// New users and films are solved from the model's factors; two epochs of small steps over the new ratings
// move the rest.
const updated = await model.update(later);
console.log(
  `${updated.userCount - model.userCount} new users, ${updated.itemCount - model.itemCount} new films in ${updated.training?.ratings} new ratings`,
);

for (const [name, candidate] of Object.entries({
  'before the update': model,
  updated,
  'trained anew': await als.fit(known),
})) {
  const { rmse, pairs, coldPairs } = await candidate.evaluate(test);
  console.log(`${name}: RMSE ${rmse.toFixed(4)} over ${pairs - coldPairs} known pairs, ${coldPairs} unknown`);
}
await session.close();
