/** Fits of ratings that exceed one block, for the tests of SGD in bands. */
import { afterAll, afterEach } from 'vitest';
import { type FitOptions, Model, type PhysicalPlan, Session, SGD, type SgdOptions } from '../../index.ts';
import { blockLimit } from '../../operators/planner/sizes.ts';
import type { SgdSchedule } from '../../operators/sgd/schedules/schedule.ts';
import { plantedRatings } from '../support/planted.ts';
import { ratingBatches } from '../support/ratings.ts';

const planted = plantedRatings(3, 300, 90, 9800);
export const [train, held] = [planted.slice(500), planted.slice(0, 500)];
export const usual = blockLimit.ratings;
export const LIMIT = 2500;
/** The session that `fit` trains in; closed after the tests of the file. */
export const current: { session?: Session } = {};

afterEach(() => {
  blockLimit.ratings = usual;
});

afterAll(() => current.session?.close());

export async function fit(
  limit: number,
  options: SgdOptions = {},
  run: FitOptions = {},
  rows = train,
): Promise<Model> {
  blockLimit.ratings = limit;
  const session = current.session!;
  return new SGD({ rank: 6, maxIter: 3, seed: 3, ...options }).fit(session.from(ratingBatches(rows)), {
    validation: session.from(ratingBatches(held)),
    ...run,
  });
}

export const scheduleOf = (plan: PhysicalPlan) => plan.choices.schedule as unknown as SgdSchedule;
export const last = (model: Model) => model.training!.iterations.at(-1)!;
