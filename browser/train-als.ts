import type { RunOptions } from '../api/run-session.ts';
import { UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { planDevices } from '../engine/run/devices.ts';
import {
  type AlsParams,
  knownForm,
  sizedParams,
  type SizedAlsParams,
  wantedRecency,
} from '../operators/als/als-params.ts';
import { effectiveRatings } from '../operators/als/implicit/effective-ratings.ts';
import { learnWeight, weightJson, weightedRatings } from '../operators/als/implicit/rating-weight.ts';
import { chooseKernels, profileOfSorted } from '../operators/als/kernel-choices.ts';
import { checkAlsParams } from '../operators/als/params.ts';
import { planAls } from '../operators/als/plan/plan-als.ts';
import { inUnit, levelInUnit, ratingsInUnit, ratingUnit } from '../operators/als/rating-unit.ts';
import { type AlsResult, trainAls as trainOn } from '../operators/als/train.ts';
import { sortedRatingFacts, type SortedFacts } from '../operators/evaluation/rating-facts.ts';
import type { IndexedRatings } from '../operators/ratings/ids/number-ids.ts';
import { sortByUser, sortRatings } from '../operators/ratings/sort-ratings.ts';
import { factorsOfRows } from '../operators/training/model-rows.ts';
import type { PageDeviceName } from './device-choice.ts';
import { indexKnown, indexPageRatings, type PageRating } from './page-ratings.ts';
import { defaultThreads } from './page-threads.ts';
import { type EndedFit, type PageTraining, runTraining } from './page-training.ts';

/** Options of `trainAls`: the parameters of `ALS`, and test ratings. */
export interface PageAlsOptions extends Partial<AlsParams>, RunOptions {
  /** Ratings that measure each iteration (`testRmse`) and are not trained on; for explicit data. */
  readonly test?: readonly PageRating[];
  /**
   * `cpu`: WebAssembly; the model has the same bits as Node's. `gpu`: WebGPU; throws UsageError where the
   * browser has none. `auto`: WebGPU if the browser has it on a graphics card, else the CPU. Default: cpu.
   */
  readonly device?: PageDeviceName;
  /**
   * Number of threads on the CPU. A page that is not cross-origin isolated uses 1. Default: the number of
   * threads that the processor has, at most 8.
   */
  readonly threads?: number;
}

/**
 * Trains ALS in the page, by the operators and kernels of Node, from ratings that stay in the page. It takes
 * seconds for 100,000 ratings and holds the thread meanwhile: call it in a web worker. Throws UsageError for
 * wrong options and ratings.
 */
export async function trainAls(
  ratings: readonly PageRating[],
  { test, signal, onEvent, device = 'cpu', threads = defaultThreads(), ...given }: PageAlsOptions = {},
): Promise<PageTraining> {
  const asked = checkAlsParams(given, ['test', 'signal', 'onEvent', 'device', 'threads']);
  if (wantedRecency(asked) !== undefined)
    throw new UsageError('halfLife cannot be used here: the ratings of a page have no times', {
      advice: 'Leave it out, or train with Node',
    });
  return runTraining('trainAls', { signal, onEvent, device, threads }, (ctx) =>
    fitRatings(ratings, asked, test, ctx),
  );
}

async function fitRatings(
  ratings: readonly PageRating[],
  asked: AlsParams,
  test: readonly PageRating[] | undefined,
  ctx: ExecutionContext,
): Promise<EndedFit> {
  const indexed = await indexPageRatings(ratings, asked.implicitPrefs, ctx);
  const known = test && !asked.implicitPrefs ? await indexKnown(test, indexed, ctx) : undefined;
  const { users, items, rows, itemCounts } = indexed;
  const sizes = { users: keyCount(users), items: keyCount(items), ratings: rows };
  const params = sizedParams(asked, sizes);
  const sorted = await sortedSides(indexed, params, ctx);
  const { facts, unit } = sorted;
  const block = known && known.indexed.rows > 0 ? await sortByUser(known.indexed, 'keep', ctx) : undefined;
  const devices = planDevices(ctx.executor);
  const profile = { ...profileOfSorted(sorted, sorted.largest), testRatings: block?.ratings };
  const choices = await chooseKernels(profile, params, ctx);
  // After a GPU is lost, the CPU continues with a plan of its own.
  const plan = (compute: readonly DeviceInfo[]) =>
    planAls(profile, params, { ...devices, compute }, compute[0].choosesKernels ? choices : undefined);
  const result = await trainOn(
    { byUser: sorted.byUser, byItem: sorted.byItem, users, items, test: block && inUnit(block, unit) },
    params,
    { unit, level: levelInUnit(facts, unit), devices: devices.compute, plan },
    ctx,
  );
  const course = {
    iterations: result.iterations,
    bestIteration: result.bestIteration,
    coldPairs: known?.unknown ?? 0,
  };
  const device = devices.compute[0].description;
  return { course, device, parts: partsOf(indexed, params, result, { ...sorted, itemCounts }) };
}

/** The ratings by user and by item, divided by their unit, or replaced by the weights of implicit data. */
async function sortedSides(indexed: IndexedRatings, params: SizedAlsParams, ctx: ExecutionContext) {
  const read = await sortRatings(indexed, { duplicates: 'keep' }, ctx);
  const sides = params.implicitPrefs ? (await effectiveRatings(read, ctx)).blocks : read;
  const facts = await sortedRatingFacts(sides, ctx);
  const largest = Math.max(Math.abs(facts.least), Math.abs(facts.most));
  if (!params.implicitPrefs) {
    const unit = ratingUnit(facts, params.biases);
    const [byUser, byItem] = [
      await ratingsInUnit(sides.byUser, unit, ctx),
      await ratingsInUnit(sides.byItem, unit, ctx),
    ];
    return { byUser, byItem, facts, unit, weight: undefined, largest: largest / unit };
  }
  const { itemCounts: counts } = indexed;
  const weight = await learnWeight(knownForm(params), sides.byUser, counts, ctx);
  if (weight.changesNothing) return { ...sides, facts, unit: 1, weight, largest };
  const options = { counts, keeps: false };
  const byUser = await weightedRatings({ ratings: sides.byUser, rows: 'users' }, weight, options, ctx);
  const byItem = await weightedRatings({ ratings: sides.byItem, rows: 'items' }, weight, options, ctx);
  return { byUser, byItem, facts, unit: 1, weight, largest: weight.largest };
}

/** The trained model as a page holds it, with the facts that solve new users. */
function partsOf(
  { users, items }: IndexedRatings,
  params: SizedAlsParams,
  { sides, ratingDeviation }: Pick<AlsResult, 'sides' | 'ratingDeviation'>,
  found: {
    readonly facts: SortedFacts;
    readonly weight: Awaited<ReturnType<typeof learnWeight>> | undefined;
    readonly itemCounts: Int32Array;
  },
) {
  const { rank, biases } = params;
  const metadata: JsonObject = {
    algorithm: 'als',
    rank,
    params: { ...params },
    ...(biases && { meanRating: found.facts.mean }),
    ...(ratingDeviation !== undefined && { ratingDeviation }),
    ...(found.weight && { ratingWeight: weightJson(found.weight) }),
  };
  return {
    factors: { rank: rank + (biases ? 2 : 0), users, items, ...factorsOfRows(sides) },
    rank,
    itemCounts: new Uint32Array(found.itemCounts),
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    metadata,
  };
}
