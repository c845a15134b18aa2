import { beforeAll, describe, expect, it } from 'vitest';
import {
  ALS,
  type Dataset,
  type ExplainedPlan,
  type JsonObject,
  type PhysicalPlan,
  SGD,
  UsageError,
} from '../../index.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

let ratings: Dataset;
const params = { rank: 3, maxIter: 2 } as const;

const session = await cpuSession({ workers: 1 });
beforeAll(async () => {
  ratings = session.from(ratingBatches(randomRatings(4, 40, 30, 400)));
});

describe.each([
  ['ALS', new ALS(params)],
  ['SGD', new SGD(params)],
] as const)('the plan of %s', (_, trainer) => {
  it('is run as an object, as JSON, and as the model saves it', async () => {
    const plan: ExplainedPlan = await trainer.plan(ratings);
    const bits = async (given?: ExplainedPlan | PhysicalPlan | JsonObject) =>
      Array.from(
        (await trainer.fit(ratings, { plan: given })).userFactors.getChild('features')?.data[0].children[0]
          .values as Float32Array,
      );
    const free = await bits();
    const { training, metadata } = await trainer.fit(ratings, { plan });
    for (const given of [
      plan,
      plan.plan,
      JSON.parse(JSON.stringify(plan)) as JsonObject,
      metadata.plan as JsonObject,
      training?.planned,
    ])
      expect(await bits(given)).toEqual(free);
  });

  it('is refused with the difference where it does not fit', async () => {
    const plan = await trainer.plan(ratings);
    const fit = (given: unknown, one: ALS | SGD = trainer) => one.fit(ratings, { plan: given as JsonObject });
    const Other = trainer instanceof ALS ? ALS : SGD;
    await expect(fit(plan, new Other({ ...params, rank: 5 }))).rejects.toThrow(
      'the plan does not fit: params.rank is 3 in the plan, and 5 here',
    );
    await expect(fit(plan, trainer instanceof ALS ? new SGD(params) : new ALS(params))).rejects.toThrow(
      'algorithm is',
    );
    const fewer = session.from(ratingBatches(randomRatings(4, 39, 30, 400)));
    await expect(trainer.fit(fewer, { plan })).rejects.toThrow('sizes.users is 40 in the plan');
    for (const wrong of [3, [], {}, { planVersion: 6 }]) await expect(fit(wrong)).rejects.toThrow(UsageError);
    await expect(
      fit({ ...plan.toJSON(), choices: { ...plan.plan.choices, start: 'a model' } }),
    ).rejects.toThrow('it continues a model, and this training starts anew');
  });

  it('is no option of plan', async () => {
    await expect(trainer.plan(ratings, { plan: {} } as never)).rejects.toThrow('unknown option plan');
  });
});
