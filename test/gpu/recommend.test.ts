/** A GPU receives the users range by range: lists and exclusions must belong to the range's own users. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, Model, Session } from '../../index.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const rows = randomRatings(91, 2300, 40, 12_000);
/** Length of the lists, so large that a range has 1,048 users. */
const N = 1000;

/** "user item" of every line, and the predictions. */
async function recommended(
  device: 'cpu' | 'gpu',
  folder: string,
): Promise<{ readonly pairs: string[]; readonly predictions: number[] }> {
  await using session = await Session.create({ device, workers: 1 });
  const model = await Model.load(session, folder);
  const [pairs, predictions]: [string[], number[]] = [[], []];
  for await (const batch of model.recommendForAllUsers(N, { exclude: session.from(ratingBatches(rows)) })) {
    const [users, items, scores] = ['user', 'item', 'prediction'].map(
      (name) => batch.getChild(name)!.toArray() as Int32Array | Float32Array,
    );
    users.forEach((user, i) => pairs.push(`${user} ${items[i]}`));
    predictions.push(...scores);
  }
  return { pairs, predictions };
}

describe.skipIf(noGpu)('recommending on a GPU', () => {
  it('gives each user of several ranges the list of a CPU, without what is excluded', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'factorflow-recommend-'));
    try {
      await using session = await Session.create({ device: 'cpu', workers: 1 });
      const model = await new ALS({ rank: 5, maxIter: 2, seed: 1 }).fit(session.from(ratingBatches(rows)));
      expect(model.userCount).toBeGreaterThan(2096);
      await model.save(join(folder, 'model'));
      const [expected, found] = [
        await recommended('cpu', join(folder, 'model')),
        await recommended('gpu', join(folder, 'model')),
      ];
      expect(found.pairs.length).toBe(expected.pairs.length);
      // All candidates are in the list; the order of nearly equal ones may differ.
      expect(new Set(found.pairs)).toEqual(new Set(expected.pairs));
      const most = found.predictions.reduce(
        (so, prediction, i) => Math.max(so, Math.abs(prediction - expected.predictions[i])),
        0,
      );
      expect(most).toBeLessThan(1e-4);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
