import type { RunOptions } from '../api/run-session.ts';
import { checkSgdParams, type SgdParams } from '../operators/sgd/params.ts';
import type { PageRating } from './page-ratings.ts';
import { fitSgd } from './fit-sgd.ts';
import { defaultThreads } from './page-threads.ts';
import { type PageTraining, runTraining } from './page-training.ts';

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
