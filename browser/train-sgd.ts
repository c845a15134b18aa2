import type { RunOptions } from '../api/run-session.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { planDevices } from '../engine/run/devices.ts';
import { loadSgdData, loadSgdTest, meansByPosition } from '../operators/sgd/data/data.ts';
import { checkSgdParams, type SgdParams } from '../operators/sgd/params.ts';
import { planSgd } from '../operators/sgd/plan.ts';
import { trainSgd as trainOn } from '../operators/sgd/train.ts';
import { factorsOfRows } from '../operators/training/model-rows.ts';
import { type PageRating, indexKnown, indexPageRatings } from './page-ratings.ts';
import { defaultThreads } from './page-threads.ts';
import { type PageTraining, runTraining, type EndedFit } from './page-training.ts';

/** Options of `trainSgd`: the parameters of `SGD`, and test ratings. */
export interface PageSgdOptions extends Partial<SgdParams>, RunOptions {
  /** Ratings that measure each epoch (`testRmse`) and are not trained on. */
  readonly test?: readonly PageRating[];
  /** See PageAlsOptions. The number of threads is a part of SGD's order of steps: see docs/sgd.md. */
  readonly threads?: number;
}

/**
 * Trains SGD in the page's processor, by the operators and kernels of Node, from explicit ratings that stay in
 * the page. The model has the bits of Node's model with the same number of threads, except for the schedule
 * `hogwild`. Call it in a web worker, as `trainAls`. Throws UsageError for wrong options and ratings,
 * DivergedError if the loss rises.
 */
export async function trainSgd(
  ratings: readonly PageRating[],
  { test, signal, onEvent, threads = defaultThreads(), ...given }: PageSgdOptions = {},
): Promise<PageTraining> {
  const params = checkSgdParams(given, ['test', 'signal', 'onEvent', 'threads']);
  return runTraining('trainSgd', { signal, onEvent, device: 'cpu', threads }, (ctx) =>
    fitSgd(ratings, params, test, ctx),
  );
}

/** Trains SGD on ratings of a page: see trainSgd. */
async function fitSgd(
  ratings: readonly PageRating[],
  params: SgdParams,
  test: readonly PageRating[] | undefined,
  ctx: ExecutionContext,
): Promise<EndedFit> {
  const indexed = await indexPageRatings(ratings, false, ctx);
  const known = test && (await indexKnown(test, indexed, ctx));
  const { users, items, rows, itemCounts, userCounts } = indexed;
  const { seed, biases, rank } = params;
  const data = await loadSgdData(indexed, { duplicates: 'keep', seed, biases }, ctx);
  const block = known && known.indexed.rows > 0 ? await loadSgdTest(known.indexed, data, ctx) : undefined;
  const devices = planDevices(ctx.executor);
  const profile = {
    users: keyCount(users),
    items: keyCount(items),
    ratings: rows,
    testRatings: block?.ratings,
  };
  const plan = (compute: readonly DeviceInfo[]) =>
    planSgd(profile, params, { ...devices, compute }, { itemCounts, userCounts });
  const { sides, iterations, bestIteration } = await trainOn(
    { data, test: block },
    params,
    { devices: devices.compute, plan },
    ctx,
  );
  return {
    course: { iterations, bestIteration, coldPairs: known?.unknown ?? 0 },
    device: devices.compute[0].description,
    parts: {
      factors: { rank: rank + (biases ? 2 : 0), users, items, ...factorsOfRows(sides) },
      rank,
      itemCounts: new Uint32Array(itemCounts),
      columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
      metadata: {
        algorithm: 'sgd',
        rank,
        params: { ...params },
        ...(biases && { meanRating: meansByPosition(data).mean }),
        ratingDeviation: data.scale.deviation,
      },
    },
  };
}
