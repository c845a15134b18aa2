import { computingOf, planDevices } from '../../engine/run/devices.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type AlsChoices, chooseKernels, profileOfBlocks, tuneKernels } from '../../operators/als/kernel-choices.ts';
import { effectiveRatings } from '../../operators/als/implicit/effective-ratings.ts';
import type { AlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { inUnit, ratingUnit } from '../../operators/als/rating-unit.ts';
import { trainAls } from '../../operators/als/train.ts';
import { baselinesOf } from '../../operators/evaluation/baselines.ts';
import { type RatingFacts, ratingFacts } from '../../operators/evaluation/rating-facts.ts';
import type { IndexedRatings } from '../../operators/ratings/index-ids.ts';
import type { RatingsProfile } from '../../operators/planner/profile.ts';
import { ProfileRatings } from '../../operators/ratings/profile-ratings.ts';
import { buildRatingBlocks, buildUserBlock } from '../../operators/ratings/rating-blocks.ts';
import type { Dataset } from '../dataset.ts';
import { ExplainedPlan } from './explained-plan.ts';
import { type GivenPlan, plannedDevices, requireFits, requirePlan, requireProblem, requireSizes } from './given-plan.ts';
import { lookAt, type ValidationPairs } from './look-at-ratings.ts';
import { requireBudget } from './memory-budget.ts';
import type { Model } from '../model.ts';
import { describeInput, type FitOptions, type RatingInput } from '../rating-input.ts';
import { trainedModel } from './trained-model.ts';
import { unratedAsOnes } from './unrated-as-ones.ts';
import { trainingDevice } from './training-device.ts';

export interface AlsFit {
  readonly params: AlsParams;
  readonly input: RatingInput;
}

/** The plan of such a training: reads the ids once, to count users and items. */
export async function planAlsFit({ params, input }: AlsFit, given: Dataset, options: FitOptions): Promise<ExplainedPlan> {
  const context = given.session.context(options);
  const ratings = params.implicitPrefs ? await unratedAsOnes(given, input.columns.rating, context) : given;
  const { executor } = trainingDevice(ratings.session.device, context.executor, params);
  const ctx = { ...context, executor };
  const { users, items, ratings: count, userDegrees, itemDegrees, rating } = await runInto(input.selected(ratings.plan), new ProfileRatings(), ctx);
  const testRatings = options.validation && (await input.countPairs(options.validation));
  const largestRating = rating && Math.max(Math.abs(rating.least), Math.abs(rating.most));
  const known: RatingsProfile = { users, items, ratings: count, longestUser: userDegrees.most, longestItem: itemDegrees.most, largestRating, testRatings, input: describeInput(ratings.plan) };
  const plan = planAls(known, params, planDevices(executor), await chooseKernels(known, params, ctx));
  requireBudget(plan, ratings.session);
  return new ExplainedPlan(plan);
}

/** Trains by ALS with holdings of its own. */
export async function fitAls(fit: AlsFit, ratings: Dataset, options: FitOptions): Promise<Model> {
  const context = ratings.session.context(options);
  const { executor, text } = trainingDevice(ratings.session.device, context.executor, fit.params);
  context.events({ type: 'note', text });
  const rated = (dataset: Dataset) => (fit.params.implicitPrefs ? unratedAsOnes(dataset, fit.input.columns.rating, context) : dataset);
  const [train, validation] = [await rated(ratings), options.validation && (await rated(options.validation))];
  return Holdings.ofRun({ ...context, executor }, (ctx) => fitHeld(fit, train, { ...options, validation }, ctx));
}

async function fitHeld({ params, input }: AlsFit, ratings: Dataset, options: FitOptions, ctx: ExecutionContext): Promise<Model> {
  using _ = ctx.metrics.begin('plan');
  const { session } = ratings;
  const started = performance.now();
  const given = options.plan && requirePlan(options.plan);
  if (given) requireProblem(given, { algorithm: 'als', params });
  const devices = given ? plannedDevices(given, planDevices(ctx.executor)) : planDevices(ctx.executor);
  // An unknown kernel is refused before the ratings are read.
  if (params.kernel !== undefined) await chooseKernels({ users: 1, items: 1, ratings: 1 }, params, ctx);
  const indexed = await input.index(ratings, options.validation, ctx);
  const { users, items } = indexed;
  const profile: RatingsProfile = { users: keyCount(users), items: keyCount(items), ratings: indexed.rows, input: describeInput(ratings.plan) };
  requireBudget(planAls(profile, params, devices), session);
  const read = await buildRatingBlocks(indexed, input.onDuplicates, ctx);
  const implicit = params.implicitPrefs ? effectiveRatings(read) : undefined;
  const blocks = implicit?.blocks ?? read;
  if (blocks.byUser.ratings === 0) throw new DataError('no rating is above 0, so implicit data prefer nothing', { phase: 'load', advice: 'Give ratings above 0, or leave implicitPrefs out' });
  const { byUser, byItem, duplicates } = blocks;
  input.tellDuplicates(duplicates, ctx);
  const facts = ctx.metrics.time('look at ratings', () => ratingFacts(byUser, keyCount(items), 'users'));
  const test = options.validation && (await validationOf(options.validation, { params, input }, indexed, facts, ctx));
  const { rows, columns, mean } = facts.means;
  const looked = lookAt(facts, { duplicates, policy: input.onDuplicates, means: { mean, users: rows, items: columns }, test, implicit }, ctx);
  const unit = params.implicitPrefs ? 1 : ratingUnit(byUser, params.biases);
  const scaled = { byUser: inUnit(byUser, unit), byItem: inUnit(byItem, unit) };
  const chooses = devices.compute[0].choosesKernels ?? false;
  const known: RatingsProfile = { ...profile, ...(chooses ? profileOfBlocks(scaled) : {}), ratings: byUser.ratings, testRatings: test?.block.ratings };
  const asRead: RatingsProfile = { ...known, ratings: indexed.rows, testRatings: test && test.block.ratings + test.coldPairs };
  if (given) requireSizes(given, [known, asRead]);
  const choices = given ? chooses ? await plannedKernels(given, known, params, ctx) : undefined : await choose(scaled, known, params, ctx);
  const plan = planAls(known, params, devices, choices);
  if (given) requireFits(given, [plan, planAls(asRead, params, devices, choices)]);
  const replan = (compute: readonly DeviceInfo[]) => planAls(known, params, { ...devices, compute }, choices);
  ctx.events({ type: 'plan', plan });
  const loaded = performance.now();
  const compute = computingOf(plan, devices, 'update-users');
  const result = await trainAls({ ...scaled, users, items, test: test && inUnit(test.block, unit) }, params, { unit, devices: compute, plan: (left) => (left === compute ? plan : replan(left)) }, ctx);
  return trainedModel({ about: { algorithm: 'als', params }, session, input, users, items, itemCounts: Uint32Array.from(indexed.itemCounts), userCounts: Uint32Array.from(indexed.userCounts), ratings: byUser.ratings, duplicates, test, looked, result, planned: plan, started, loaded }, ctx);
}

/** The kernels to use, timed first where that pays. */
async function choose(blocks: Parameters<typeof tuneKernels>[0], known: RatingsProfile, params: AlsParams, ctx: ExecutionContext): Promise<AlsChoices | undefined> {
  using _ = ctx.metrics.begin('tune');
  await tuneKernels(blocks, known, params, 'where-it-pays', ctx);
  return chooseKernels(known, params, ctx);
}

/** The kernels that a plan names, with the device's description of them. Throws UsageError for one that it does not have. */
async function plannedKernels({ choices }: GivenPlan, known: RatingsProfile, params: AlsParams, ctx: ExecutionContext): Promise<AlsChoices | undefined> {
  const side = async (name: 'users' | 'items') => {
    const { variant, reason } = (choices[name] ?? {}) as Partial<AlsChoices['users']>;
    if (typeof variant !== 'string') throw new UsageError(`the plan does not fit: it names no kernel for ${name}`, { phase: 'plan', advice: 'Make the plan anew' });
    const found = await chooseKernels(known, { ...params, kernel: params.kernel ?? variant }, ctx);
    return found && { ...found[name], ...(typeof reason === 'string' ? { reason } : {}) };
  };
  const [users, items] = [await side('users'), await side('items')];
  return users && items && { users, items };
}

async function validationOf(dataset: Dataset, { params, input }: AlsFit, { users, items }: Pick<IndexedRatings, 'users' | 'items'>, { means }: RatingFacts, ctx: ExecutionContext): Promise<ValidationPairs> {
  using _ = ctx.metrics.begin('test set');
  const { indexed, coldPairs } = await input.knownPairs(dataset, users, items, ctx);
  const { byUser } = await buildUserBlock(indexed, 'keep', ctx);
  return { block: byUser, coldPairs, ...(params.implicitPrefs ? {} : { baselines: baselinesOf(byUser, means) }) };
}
