/** Steps of conjugate gradients that `cgSteps` auto takes, and the errors of models that they end at. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, type Dataset, type Model } from '../../../index.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { mostSteps, stepsOf } from '../../../operators/als/solver-choice.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { isDeep } from '../../support/deep.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

const sets = {
  movielens: dataFolder('ml-latest-small'),
};

describe('cgSteps auto', () => {
  const dense = { users: 480_189, items: 17_770, ratings: 99_072_112 };
  const sparse = { users: 16_000, items: 10_000, ratings: 100_000 };
  const stepsBy = (given: Partial<AlsParams>, counts: typeof dense) =>
    [1, 3, 4, 10].map((iteration) => stepsOf(checkAlsParams(given), counts, iteration));

  it('takes 6 steps, and 4 from the fourth iteration on where rows are held or have many ratings', () => {
    expect(stepsBy({ rank: 64 }, sparse)).toEqual([6, 6, 4, 4]);
    expect(stepsBy({ rank: 64, biases: false }, dense)).toEqual([6, 6, 4, 4]);
    expect(stepsBy({ rank: 64, biases: false }, sparse)).toEqual([6, 6, 6, 6]);
    expect(stepsBy({ rank: 64, regOffset: 0 }, sparse)).toEqual([6, 6, 6, 6]);
    expect(stepsBy({ rank: 64, implicitPrefs: true }, dense)).toEqual([6, 6, 6, 6]);
    expect(stepsBy({ rank: 64, cgSteps: 5 }, dense)).toEqual([5, 5, 5, 5]);
    expect([mostSteps({ cgSteps: 'auto' }), mostSteps({ cgSteps: 9 })]).toEqual([6, 9]);
  });

  it('gives the same model as 6 steps for three iterations, and another one after four', async () => {
    const ratings = session.from(ratingBatches(randomRatings(3, 50, 40, 1600)));
    const factors = async (cgSteps: AlsParams['cgSteps'], maxIter: number) =>
      bitsOf(
        await new ALS({
          rank: 8,
          biases: false,
          regParam: 0.01,
          solver: 'cg',
          cgSteps,
          maxIter,
          seed: 2,
        }).fit(ratings),
      );
    expect(await factors('auto', 3)).toEqual(await factors(6, 3));
    expect(await factors('auto', 4)).not.toEqual(await factors(6, 4));
  });

  for (const [set, folder] of Object.entries(sets))
    it.skipIf(!folder)(`ends within 0.0002 of 6 steps on ${set}`, async () => {
      const [train, test] = session.read
        .parquet(join(folder as string, 'ratings.parquet'))
        .randomSplit([0.9, 0.1], { seed: 1 });
      for (const form of isDeep
        ? [{ rank: 32 }, { rank: 64, biases: false, regParam: 0.05 }]
        : [{ rank: 64, biases: false, regParam: 0.05 }]) {
        const [few, six] = [
          await rmse(train, test, { ...form, cgSteps: 'auto' }),
          await rmse(train, test, { ...form, cgSteps: 6 }),
        ];
        expect(Math.abs(few - six), `${JSON.stringify(form)}: ${few} beside ${six}`).toBeLessThan(0.0002);
      }
    });
});

async function rmse(train: Dataset, test: Dataset, params: Partial<AlsParams>): Promise<number> {
  const model = await new ALS({ ...params, solver: 'cg', maxIter: 10, seed: 1 }).fit(train);
  return (await model.evaluate(test)).rmse;
}

function bitsOf(model: Model): readonly string[] {
  return [model.userFactors, model.itemFactors].map(({ data }) =>
    Buffer.from((data.children[1].children[0].values as Float32Array).slice().buffer).toString('hex'),
  );
}
