/** RMSE that SGD must reach on real ratings: with biases within 0.01 of ALS with biases, at the same λ. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Dataset, Session, SGD } from '../../../index.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { plain, undamped } from '../../support/settings.ts';

let session: Session;
beforeAll(async () => {
  session = await Session.create({ workers: 2, device: 'cpu' });
});
afterAll(() => session.close());

const [douban, movielens] = [dataFolder('douban-monti'), dataFolder('ml-latest-small')];
const error = async (trainer: ALS | SGD, train: Dataset, test: Dataset) =>
  (await (await trainer.fit(train)).evaluate(test)).rmse;
const params = { rank: 32, seed: 1 } as const;

describe('sgd with λ n alone, λ = 0.1', () => {
  it.skipIf(!douban)('is better than ALS on douban-monti, with biases and without', async () => {
    const [train, test] = ['train', 'test'].map((name) =>
      session.read.parquet(join(douban as string, `${name}.parquet`)),
    );
    for (const settings of [undamped, plain]) {
      const als = await error(new ALS({ ...params, ...settings }), train, test);
      expect(
        await error(
          new SGD({ ...params, ...(settings.biases ? undamped : { biases: false, regParam: 0.1 }) }),
          train,
          test,
        ),
      ).toBeLessThan(als);
    }
  });

  it.skipIf(!movielens)(
    'is within 0.01 of ALS on ml-latest-small with biases, averaged over three splits, and better without',
    async () => {
      for (const settings of [undamped, plain]) {
        let difference = 0;
        for (const seed of [1, 2, 3]) {
          const [train, test] = session.read
            .parquet(join(movielens as string, 'ratings.parquet'))
            .randomSplit([0.9, 0.1], { seed });
          difference +=
            (await error(
              new SGD({ ...params, ...(settings.biases ? undamped : { biases: false, regParam: 0.1 }) }),
              train,
              test,
            )) - (await error(new ALS({ ...params, ...settings }), train, test));
        }
        expect(difference / 3).toBeLessThan(settings.biases ? 0.01 : 0);
      }
    },
  );

  it.skipIf(!douban).each(['hogwild', 'wavefront', 'blocks'] as const)(
    'reaches the same error on douban-monti by %s',
    async (schedule) => {
      const [train, test] = ['train', 'test'].map((name) =>
        session.read.parquet(join(douban as string, `${name}.parquet`)),
      );
      const rmse = await error(new SGD({ ...params, ...undamped, schedule }), train, test);
      expect(rmse).toBeGreaterThan(0.73);
      expect(rmse).toBeLessThan(0.739);
    },
  );
});
