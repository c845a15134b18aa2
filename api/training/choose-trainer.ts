import { computeDevice } from '../../engine/run/devices.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import { alsDefaults } from '../../operators/als/params.ts';
import { type CommonParams, MAXIMUM_FORMED_RANK } from '../../operators/params/common.ts';
import { profileRatings } from '../../operators/ratings/profile-ratings.ts';
import type { AttributesOptions } from '../attributes.ts';
import { checkOptions, requireOptions, runOptionNames } from '../check-options.ts';
import { type Dataset, requireDataset } from '../dataset.ts';
import { RatingInput, type RatingOptions } from '../rating-input.ts';
import { requireReplayable } from '../run-rows.ts';
import type { RunOptions } from '../run-session.ts';
import { chooseAlgorithm } from './algorithm-choice.ts';
import { ALS } from './als.ts';
import { SGD } from './sgd.ts';

/** Parameters that both algorithms have. */
export interface TrainerOptions extends Partial<CommonParams>, RatingOptions, AttributesOptions {}

export interface ChosenTrainer {
  readonly trainer: ALS | SGD;
  /** The rule and the figures that decided. */
  readonly reason: string;
}

/**
 * Chooses ALS or SGD by the ratings' shape, the session's device and the target: see chooseAlgorithm for the
 * rule. Reads the ids once to count users and items. `maxIter` counts iterations or epochs; default: the
 * algorithm's own.
 */
export async function chooseTrainer(
  ratings: Dataset,
  options: TrainerOptions = {},
  run: RunOptions = {},
): Promise<ChosenTrainer> {
  requireDataset(ratings, 'chooseTrainer');
  requireOptions('chooseTrainer', options);
  checkOptions('chooseTrainer', run, runOptionNames);
  const als = new ALS(options);
  if (options.itemAttributes !== undefined || options.userAttributes !== undefined)
    return { trainer: als, reason: 'ALS, since SGD does not train with attributes' };
  const sgd = als.params.rank > MAXIMUM_FORMED_RANK ? undefined : new SGD(options);
  requireReplayable(ratings, 'chooseTrainer');
  const { userCol, itemCol, ratingCol, onBadRows } = options;
  const ctx = ratings.session.context(run);
  const input = new RatingInput({ userCol, itemCol, ratingCol, onBadRows });
  const plan = input.selected(await input.found(ratings, ctx));
  const { users, items, ratings: count } = await runInto(plan, profileRatings(), ctx);
  await ratings.session.opened(run.onEvent);
  const { rank, targetRmse } = als.params;
  const { algorithm, reason } = chooseAlgorithm(
    { users, items, ratings: count, rank, cgSteps: alsDefaults.cgSteps, targetRmse },
    computeDevice(ctx.executor).info,
  );
  return { trainer: algorithm === 'sgd' && sgd ? sgd : als, reason };
}
