/** What becomes of epochs that diverge, on factors that are only numbers: the losses are given. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inDeviceScope } from '../../engine/run/holdings.ts';
import { runInto } from '../../engine/logical-plan.ts';
import { DivergedError, Session } from '../../index.ts';
import { IndexIds } from '../../operators/ratings/index-ids.ts';
import { dominantItem } from '../../operators/sgd/convergence.ts';
import { planSgd } from '../../operators/sgd/plan.ts';
import { type SgdResult, trainWith } from '../../operators/sgd/train.ts';
import { loadSgdData } from '../../operators/sgd/data.ts';
import { checkSgdParams } from '../../operators/sgd/params.ts';
import type { SgdSchedule } from '../../operators/sgd/schedule.ts';
import type { SgdTrainer } from '../../operators/sgd-trainer.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

let session: Session;
beforeAll(async () => {
  session = await Session.create({ workers: 1, device: 'cpu' });
});
afterAll(() => session.close());

const schedule: SgdSchedule = { kind: 'blocks', workers: 1, rows: 'users', rowBands: 1, columnBands: 1, reasons: [] };

/** Runs epochs whose losses are these, one after the other, with the rates that they were stepped by. */
async function train(losses: readonly number[], maxIter: number): Promise<{ readonly result: SgdResult; readonly rates: readonly number[] }> {
  const rates: number[] = [];
  const trainer: SgdTrainer<number> = {
    losable: false,
    start: async () => -1,
    epoch: async (_from, { rate }) => rates.push(rate) - 1,
    loss: async (version) => ({ loss: losses[version], trainRmse: 1 }),
    testErrors: async () => ({ squared: 0, absolute: 0, count: 1 }),
    fetch: async () => ({ userFactors: new Float32Array(), itemFactors: new Float32Array() }),
    release: () => undefined,
    releaseAll: () => undefined,
  };
  const result = await inDeviceScope(session.context(), async (ctx) => {
    const indexed = await runInto(session.from(ratingBatches(randomRatings(3, 20, 20, 100))).plan, new IndexIds(), ctx);
    const data = await loadSgdData(indexed, schedule, { duplicates: 'keep', seed: 1, biases: false }, ctx);
    return trainWith(trainer, { data, schedule }, checkSgdParams({ rate: 'constant', learningRate: 1, maxIter }), ctx);
  });
  return { result, rates };
}

describe('restarts of SGD', () => {
  it('are announced by the plan where one item has a large part of the ratings', async () => {
    const device = { name: 'cpu', kind: 'cpu', parallelism: 1, capacityBytes: null, description: 'a CPU' } as const;
    const warnings = (itemCounts: readonly number[]) => {
      const plan = planSgd({ users: 50, items: 3, ratings: 100 }, checkSgdParams({}), device, { itemCounts });
      return plan.stages.flatMap(({ reasons = [] }) => reasons).filter((reason) => reason.startsWith('WARNING: one item'));
    };
    expect(warnings([50, 25, 25])).toEqual([expect.stringMatching(/^WARNING: one item has 50 % of the ratings: .*smaller learningRate, or ALS$/)]);
    expect(dominantItem({ ratings: 100, itemCounts: [20, 20, 20, 20, 20] })).toBeUndefined();
    expect(dominantItem({ ratings: 100 })).toBeUndefined();
  });

  it('are three at most for each epoch, not for the run', async () => {
    const { result, rates } = await train([100, 200, 90, 200, 80, 200, 70, 200, 60, Number.NaN, 50], 6);
    expect(result.iterations.map(({ loss }) => loss)).toEqual([100, 90, 80, 70, 60, 50]);
    expect(rates).toEqual([1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.03125]);
  });

  it('end the run where three of them do not help', async () => {
    await expect(train([100, 90, 200, 200, 200, 200], 6)).rejects.toThrow(DivergedError);
    await expect(train([100, 90, 200, 200, 200, 200], 6)).rejects.toThrow(/epoch 3: the loss is 200, after 90 before it, and so it was with 3 halved learning rates, the last of them 0\.125/);
  });
});
