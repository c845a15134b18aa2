import { parseMetric, type RankingMetricName } from '../evaluation/ranking/ranking-metrics.ts';
import { type OneOrTwo, seedParam } from './param.ts';
import type { ParamsOf, Rule } from './table.ts';

/** Largest rank of ALS by conjugate gradients. */
export const MAXIMUM_RANK = 4096;

/** Largest rank of SGD, and of solvers that form A. */
export const MAXIMUM_FORMED_RANK = 512;

/** Most iterations or epochs. */
export const MOST_ITERATIONS = 1_000_000;

/**
 * Defaults of λ, o and d (see CommonParams) of models with biases and of models without, chosen by
 * measurements on all data sets of explicit ratings: docs/measured/quality.md.
 */
const withBiases = { regParam: 0.02, regOffset: 10, biasDamping: [3, 5] } as const;
const withoutBiases = { regParam: 0.1, regOffset: 0, biasDamping: 0 } as const;

/** Default λ of explicit ratings. */
export function explicitLambda(biases: boolean): number {
  return (biases ? withBiases : withoutBiases).regParam;
}

/**
 * Defaults of models without biases, where they differ from those in the table of parameters. Empty with
 * biases.
 */
export function dependentDefaults(biases: boolean): Partial<CommonParams> {
  return biases ? {} : { biases, ...withoutBiases };
}

/**
 * The measure on the validation set that decides which iteration is the best: RMSE, or a metric of full
 * rankings.
 */
export type EarlyStopMetric = 'rmse' | RankingMetricName;

/** Parameters of both algorithms. Names are Spark ML's if it has the parameter. */
export interface CommonParams {
  /**
   * f (k in papers on SGD): number of factors of each user and item, 1 to 4096; above 512 only by ALS with
   * conjugate gradients. Default 10.
   */
  readonly rank: number;
  /**
   * Iterations of ALS, at least 1, default 10; or epochs of SGD, which each visit every rating once, default
   * 20.
   */
  readonly maxIter: number;
  /**
   * λ, 0 or more. In ALS it is multiplied by the number of ratings of the row (ALS-WR); in SGD it acts at
   * each rating, which amounts to the same. Default 0.02, and 0.1 without biases.
   */
  readonly regParam: number;
  /**
   * o of the regularization λ n + o of a row with n ratings (ALS: λ n^ν + o); 0 or more, in standard
   * deviations of the ratings. It regularizes rows of few ratings, on which λ n has little effect. Default
   * 10, and 0 without biases.
   */
  readonly regOffset: number;
  /**
   * Seed of the initial factors, a whole number from 0 to 2^32 - 1. The same data, seed and plan give the
   * same model, except for SGD by `hogwild` and `tile`. Default 0.
   */
  readonly seed: number;
  /**
   * True also learns the mean μ and biases of users and items: r_uv ≈ μ + β_u + γ_v + x_uᵀθ_v. Default true,
   * and false for implicit data.
   */
  readonly biases: boolean;
  /**
   * d: the biases of a row of n ratings are regularized by λ n + d, as if d ratings equal to the mean
   * were added. One number, or [users, items], 0 or more. Only with biases. Default [3, 5], and 0 without
   * biases.
   */
  readonly biasDamping: OneOrTwo;
  /**
   * Precision of the factors that a GPU gathers: float32, float16, or 8 bits with a scale for each factor
   * (only ALS on explicit ratings, with tensor cores that multiply integers). `auto` takes the best for the
   * problem: 8 bits where they suit, see docs/gpu.md. The factors themselves and sums are float32. A CPU
   * computes in float32 and refuses the others. Default 'auto'.
   */
  readonly precision: 'auto' | 'f32' | 'f16' | 'int8';
  /**
   * Ends the training after this number of iterations without a better value of `earlyStopMetric` on the
   * validation set, and keeps the best iteration; needs `validation`. Default: no early stop, and the last
   * iteration is kept.
   */
  readonly earlyStop?: number;
  /**
   * Metric of `earlyStop`: RMSE, or a ranking metric such as 'ndcg@20', over full rankings of the items that
   * users have not rated in the training set. Default 'rmse'.
   */
  readonly earlyStopMetric?: EarlyStopMetric;
  /**
   * Ends the training once the validation RMSE, in the ratings' unit, is at most this; needs `validation`.
   * Default: no target.
   */
  readonly targetRmse?: number;
}

export const noDamping: Rule<Pick<CommonParams, 'biases' | 'biasDamping'>> = {
  refused: 'biasDamping',
  when: ({ biases }) => !biases,
  message: (named) => `${named('biasDamping')} has no effect without ${named('biases')}`,
  advice: 'Leave biasDamping out, or learn biases',
};

export const commonParams: ParamsOf<CommonParams> = {
  rank: {
    kind: 'whole number',
    help:
      `factors of a user and an item, 1 to ${MAXIMUM_RANK}; ` +
      `above ${MAXIMUM_FORMED_RANK} only by ALS with CG`,
    least: 1,
    most: MAXIMUM_RANK,
    fallback: 10,
  },
  maxIter: {
    kind: 'whole number',
    help: 'iterations; each solves all items, then all users (sgd: visits each rating once)',
    least: 1,
    most: MOST_ITERATIONS,
    fallback: 10,
  },
  regParam: {
    kind: 'number',
    help: 'λ, multiplied by the number of ratings of the user or item',
    called: 'regParam (λ)',
    least: 0,
    fallback: withBiases.regParam,
    defaultText: `${withBiases.regParam}; without biases ${withoutBiases.regParam}`,
  },
  regOffset: {
    kind: 'number',
    help: 'added to λ n, in standard deviations of the ratings; acts on users and items with few ratings',
    least: 0,
    fallback: withBiases.regOffset,
    defaultText: `${withBiases.regOffset}; without biases ${withoutBiases.regOffset}`,
  },
  seed: {
    ...seedParam,
    help: 'seed of the initial factors and of ratings held out at random; the same seed gives the same model',
  },
  biases: {
    kind: 'toggle',
    help: 'learn the mean and a bias of each user and item too',
    off: 'learn only factors, without the mean and a bias of each user and item',
    fallback: true,
  },
  biasDamping: {
    kind: 'one or two numbers',
    help: 'damps biases as if each user and item had D more ratings equal to the mean; D, or U,I for users and items',
    least: 0,
    fallback: withBiases.biasDamping,
    defaultText: withBiases.biasDamping.join(','),
  },
  precision: {
    kind: 'choice',
    help: 'precision of the factors that a GPU gathers; sums are float32',
    choices: ['auto', 'f32', 'f16', 'int8'],
    fallback: 'auto',
  },
  earlyStop: {
    kind: 'whole number',
    help: 'end after this many iterations without a better test error or metric; the best is kept',
    group: 'Held-out ratings:',
    least: 1,
    most: MOST_ITERATIONS,
  },
  earlyStopMetric: {
    kind: 'text',
    help: 'metric of --early-stop: rmse, or one of rankings such as ndcg@20',
    group: 'Held-out ratings:',
    meaning: 'rmse or a ranking metric such as ndcg@20',
    defaultText: 'rmse',
  },
  targetRmse: {
    kind: 'number',
    help: 'end once the test RMSE is at most this',
    group: 'Held-out ratings:',
    above: 0,
  },
};

type EarlyStop = Pick<CommonParams, 'earlyStop' | 'earlyStopMetric'>;

/** Rule of both tables: refuses a metric without earlyStop. */
export const metricNeedsEarlyStop: Rule<EarlyStop> = {
  refused: 'earlyStopMetric',
  when: ({ earlyStop }) => earlyStop === undefined,
  message: (named) => `${named('earlyStopMetric')} acts only with ${named('earlyStop')}`,
  advice: 'Give both, or leave it out',
};

/** The ranking metric of early stop; undefined if it is the RMSE. */
export function rankingMetricOf({ earlyStopMetric }: EarlyStop): RankingMetricName | undefined {
  return earlyStopMetric === 'rmse' ? undefined : earlyStopMetric;
}

/** Throws UsageError for a metric that does not exist. */
export function checkMetric(params: EarlyStop): void {
  const metric = rankingMetricOf(params);
  if (metric !== undefined) parseMetric(metric, 'earlyStopMetric');
}

/** Reason in plans whose validation measures rankings. */
export function rankingReasons(params: EarlyStop, called: 'iteration' | 'epoch'): string[] {
  const metric = rankingMetricOf(params);
  return metric === undefined
    ? []
    : [
        `validation by ${metric}: after each ${called} the factors are copied to the host, and all items are ranked for the users of the validation set`,
      ];
}
