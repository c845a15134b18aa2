import { formatCount } from '../../engine/format.ts';
import {
  commonParams,
  type CommonParams,
  checkMetric,
  dependentDefaults,
  MAXIMUM_FORMED_RANK,
  MAXIMUM_RANK,
  metricNeedsEarlyStop,
  noDamping,
} from '../params/common.ts';
import { forSides } from '../params/param.ts';
import { checkParams, type ParamTable } from '../params/table.ts';

/**
 * Parameters of SGD. Rates are in units of the ratings' standard deviation, so that they suit any scale of
 * ratings.
 */
export interface SgdParams extends CommonParams {
  /** λ of users, 0 or more, instead of `regParam`. Default: `regParam`. */
  readonly regParamUsers?: number;
  /** λ of items, 0 or more, instead of `regParam`. Default: `regParam`. */
  readonly regParamItems?: number;
  /** α, the learning rate of the first epoch, above 0, for ratings of standard deviation 1. Default 0.08. */
  readonly learningRate: number;
  /** β of the rate `paper`, 0 or more: the rate of epoch t, from 0, is α / (1 + β t^1.5). Default 0.3. */
  readonly decay: number;
  /**
   * Schedule of the learning rate: `paper` α / (1 + β t^1.5), `constant`, `bold` (by the loss), `adagrad` (a
   * rate for each row). Default 'paper'.
   */
  readonly rate: 'paper' | 'constant' | 'bold' | 'adagrad';
  /**
   * Order in which workers visit the ratings (docs/sgd.md). `auto` takes blocks on a CPU and on several GPUs,
   * tile or hogwild on one GPU. Default 'auto'.
   */
  readonly schedule: 'auto' | 'hogwild' | 'wavefront' | 'tile' | 'blocks';
}

export const sgdTable: ParamTable<SgdParams> = {
  algorithm: 'SGD',
  params: {
    ...commonParams,
    maxIter: { ...commonParams.maxIter, fallback: 20 },
    learningRate: {
      kind: 'number',
      help: 'sgd: rate α of the first epoch, for ratings of deviation 1',
      called: 'learningRate (α)',
      above: 0,
      fallback: 0.08,
    },
    decay: { kind: 'number', help: 'sgd: β of --rate paper, α / (1 + β t^1.5)', least: 0, fallback: 0.3 },
    rate: {
      kind: 'choice',
      help: "sgd: course of the rate over the epochs; by the loss (bold), by each row's gradients (adagrad)",
      choices: ['paper', 'constant', 'bold', 'adagrad'],
      fallback: 'paper',
    },
    schedule: {
      kind: 'choice',
      help: 'sgd: order in which workers visit the ratings; tile is for GPUs',
      choices: ['auto', 'hogwild', 'wavefront', 'tile', 'blocks'],
      fallback: 'auto',
    },
    regParamUsers: { kind: 'number', help: 'sgd: λ of users', least: 0, defaultText: '--reg-param' },
    regParamItems: { kind: 'number', help: 'sgd: λ of items', least: 0, defaultText: '--reg-param' },
  },
  rules: [
    {
      refused: 'rank',
      when: ({ rank }) => rank > MAXIMUM_FORMED_RANK,
      message: (named, { rank }) =>
        `${named('rank', rank)} is above ${MAXIMUM_FORMED_RANK}, the largest rank of SGD`,
      advice: `Train by ALS, which goes to ${formatCount(MAXIMUM_RANK)}`,
    },
    noDamping,
    metricNeedsEarlyStop,
    {
      refused: 'precision',
      when: ({ precision }) => precision === 'int8',
      message: (named) =>
        `${named('precision', 'int8')} cannot be used for SGD, whose steps are too small for 8 bits`,
      advice: 'Leave the precision at auto',
    },
    {
      refused: 'decay',
      when: ({ rate }) => rate !== 'paper',
      message: (named, { rate }) =>
        `${named('decay')} (β) acts only with ${named('rate', 'paper')}, not with ${rate}`,
      advice: 'Leave one of them out',
    },
    {
      refused: 'regParam',
      when: ({ regParamUsers, regParamItems }) => regParamUsers !== undefined && regParamItems !== undefined,
      message: (named) =>
        `${named('regParam')} has no effect together with ${named('regParamUsers')} and ${named('regParamItems')}`,
      advice: 'Leave one of them out',
    },
  ],
  dependent: ({ biases = true }) => dependentDefaults(biases),
};

/**
 * Number of features in a row of factors: the rank, and with biases two more (the bias and a constant 1),
 * which precede the factors.
 */
export function sgdFeatures({ rank, biases }: Pick<SgdParams, 'rank' | 'biases'>): number {
  return rank + (biases ? 2 : 0);
}

/** λ of users and of items. */
export function lambdasOf({ regParam, regParamUsers = regParam, regParamItems = regParam }: SgdParams): {
  readonly users: number;
  readonly items: number;
} {
  return { users: regParamUsers, items: regParamItems };
}

/**
 * λ of users and items for steps on ratings that were divided by their deviation σ. Factors are then 1 / √σ
 * of the model's, and λ is divided by σ. It is limited to 1 / 4α: with a larger λ a single step would change
 * a factor by a large part, and the result is the same anyway, since the ratings have hardly any effect and
 * all factors become 0.
 */
export function steppedLambdas(
  params: SgdParams,
  deviation: number,
): { readonly users: number; readonly items: number } {
  const { users, items } = lambdasOf(params);
  const most = 1 / (4 * params.learningRate);
  return { users: Math.min(users / deviation, most), items: Math.min(items / deviation, most) };
}

/**
 * Regularization of each side in addition to λ: `offset` of factors (in units of the ratings' deviation), and
 * `damping` of biases.
 */
export function shrinkOf({
  regOffset: offset,
  biases,
  biasDamping,
}: SgdParams): Readonly<Record<'users' | 'items', { readonly offset: number; readonly damping: number }>> {
  const { users, items } = forSides(biases ? biasDamping : 0);
  return { users: { offset, damping: users }, items: { offset, damping: items } };
}

/** True if a side has regularization in addition to λ. */
export function shrinks(params: SgdParams, side: 'users' | 'items'): boolean {
  const { offset, damping } = shrinkOf(params)[side];
  return offset > 0 || damping > 0;
}

/** Fills in defaults. Throws UsageError that names parameter and value. */
export function checkSgdParams(given: Partial<SgdParams>, others?: readonly string[]): SgdParams {
  const params = checkParams(sgdTable, given, others);
  checkMetric(params);
  return params;
}
