import { UsageError } from '../../engine/errors.ts';
import { type EarlyStopMetric, rankingMetricOf } from '../params/common.ts';
import type { TrainingIteration } from './iteration.ts';

/** Parameters that may end a run before its last iteration. */
export interface StoppingParams {
  /** Ends after this number of iterations without a better value of the metric, and keeps the best. */
  readonly earlyStop?: number;
  /** See CommonParams. */
  readonly earlyStopMetric?: EarlyStopMetric;
  /** Ends once the validation RMSE is at most this. */
  readonly targetRmse?: number;
}

export interface Verdict {
  /** True if these factors are the best so far. */
  readonly best: boolean;
  /** The reason to stop now; undefined to continue. */
  readonly stop?: string;
}

/**
 * Decides after each iteration which factors to keep and whether to continue. Without `earlyStop` the last
 * iteration is the best. With it, the iteration with the lowest validation RMSE or the highest ranking
 * metric is the best, and training ends after `earlyStop` iterations without a better one. With
 * `targetRmse`, training also ends once the validation RMSE has reached the target.
 */
export class StoppingRule {
  readonly #params: StoppingParams;
  readonly #metric: string | undefined;
  /** The least value so far: of the RMSE, or of the metric with reversed sign. */
  #least = Number.POSITIVE_INFINITY;
  #bestIteration = 0;

  constructor(params: StoppingParams, test: { readonly ratings: number } | undefined) {
    this.#params = params;
    this.#metric = rankingMetricOf(params);
    if (test !== undefined && test.ratings > 0) return;
    const lack =
      test === undefined
        ? 'a validation set'
        : 'a validation set with ratings of users and items of the training set; this one has no such ratings';
    for (const name of ['earlyStop', 'targetRmse'] as const) {
      if (params[name] !== undefined)
        throw new UsageError(`${name} needs ${lack}`, { advice: 'Pass one with the option validation' });
    }
  }

  /** True if no iteration can end the run and each one counts as the best so far, with any errors. */
  get isForeseen(): boolean {
    return StoppingRule.isForeseen(this.#params);
  }

  static isForeseen({ earlyStop, targetRmse }: StoppingParams): boolean {
    return earlyStop === undefined && targetRmse === undefined;
  }

  /** Restores the state after these iterations, and returns the verdict on the last one. */
  rewind(iterations: readonly TrainingIteration[]): Verdict {
    this.#least = Number.POSITIVE_INFINITY;
    this.#bestIteration = 0;
    let verdict: Verdict = { best: true };
    for (const one of iterations) verdict = this.judge(one);
    return verdict;
  }

  judge({ iteration, testRmse, testMetrics = {} }: TrainingIteration): Verdict {
    const { earlyStop, targetRmse } = this.#params;
    const metric = this.#metric;
    const value = metric === undefined ? testRmse : -testMetrics[metric];
    if (value === undefined) return { best: true };
    const better = value < this.#least;
    if (better) {
      this.#least = value;
      this.#bestIteration = iteration;
    }
    const best = better || earlyStop === undefined;
    if (targetRmse !== undefined && testRmse !== undefined && testRmse <= targetRmse) {
      return {
        best,
        stop: `stopped after iteration ${iteration}: validation RMSE ${testRmse.toFixed(4)} reached the target ${targetRmse}`,
      };
    }
    if (earlyStop !== undefined && iteration - this.#bestIteration >= earlyStop) {
      return {
        best,
        stop: `stopped after iteration ${iteration}: no better validation ${metric ?? 'RMSE'} than ${Math.abs(this.#least).toFixed(4)} of iteration ${this.#bestIteration}, which is kept`,
      };
    }
    return { best };
  }
}
