import {
  checkMetric,
  commonParams,
  dependentDefaults,
  explicitLambda,
  MAXIMUM_FORMED_RANK,
  metricNeedsEarlyStop,
  noDamping,
  rankingMetricOf,
} from '../params/common.ts';
import { checkParams, defaultsOf, type ParamTable, type Rule } from '../params/table.ts';
import { DURATION, recencyOf } from '../ratings/rows/recency.ts';
import { type AlsParams, requestedGrids, sumsOfParts } from './als-params.ts';
import { isExact } from './solver-choice.ts';

type Named = Parameters<Rule<AlsParams>['message']>[0];

/** Combinations of ALS parameters that are refused. */
const alsRules: readonly Rule<AlsParams>[] = [
  {
    refused: 'solver',
    when: ({ solver, nonnegative }) => nonnegative && solver === 'cg',
    message: (named) =>
      `${named('solver', 'cg')} cannot be used with ${named('nonnegative')}: conjugate gradients do ` +
      `not keep factors >= 0`,
    advice: 'Leave the solver at auto, or leave nonnegative out',
  },
  {
    refused: 'solver',
    when: ({ solver, rank }) => isExact(solver) && rank > MAXIMUM_FORMED_RANK,
    message: (named, { solver, rank }) =>
      `${named('solver', solver)} cannot be used with ${named('rank', rank)}: exact solvers ` +
      `form a matrix of rank x rank numbers for each row, and end at rank ${MAXIMUM_FORMED_RANK}`,
    advice: `Give solver cg, or a rank of at most ${MAXIMUM_FORMED_RANK}`,
  },
  {
    refused: 'nonnegative',
    when: ({ nonnegative, rank }) => nonnegative && rank > MAXIMUM_FORMED_RANK,
    message: (named, { rank }) =>
      `${named('nonnegative')} cannot be used with ${named('rank', rank)}: its solver is exact, ` +
      `and above rank ${MAXIMUM_FORMED_RANK} there are only conjugate gradients`,
    advice: `Leave nonnegative out, or give a rank of at most ${MAXIMUM_FORMED_RANK}`,
  },
  {
    refused: 'partitionSums',
    when: ({ partitionSums, rank }) =>
      rank > MAXIMUM_FORMED_RANK && partitionSums !== 'auto' && partitionSums !== 'vectors',
    message: (named, { partitionSums, rank }) =>
      `${named('partitionSums', partitionSums)} cannot be used with ${named('rank', rank)}: above ` +
      `${MAXIMUM_FORMED_RANK} no normal equations are formed`,
    advice: 'Give vectors, or leave partitionSums at auto',
  },
  noDamping,
  {
    refused: 'cgSteps',
    when: ({ nonnegative }) => nonnegative,
    message: (named) => `${named('cgSteps')} has no effect with ${named('nonnegative')}`,
    advice: 'Leave one of them out',
    onlyFlags: true,
  },
  {
    refused: 'cgSteps',
    when: ({ solver }) => isExact(solver),
    message: (named, { solver }) => `${named('cgSteps')} has no effect with ${named('solver', solver)}`,
    advice: 'Leave one of them out',
    onlyFlags: true,
  },
  ...(['alpha', 'unobservedWeight', 'weight', 'halfLife'] as const).map((refused) => ({
    refused,
    when: ({ implicitPrefs }: AlsParams) => !implicitPrefs,
    message: (named: Named) => `${named(refused)} acts only on implicit data, with ${named('implicitPrefs')}`,
    advice: 'Give both, or leave it out',
  })),
  {
    refused: 'now',
    when: ({ halfLife = 'none' }) => halfLife === 'none',
    message: (named) => `${named('now')} acts only with ${named('halfLife')}`,
    advice: 'Give both, or leave it out',
  },
  {
    refused: 'weight',
    when: ({ halfLife = 'none', weight }) => halfLife !== 'none' && weight === 'bm25',
    message: (named) =>
      `${named('weight', 'bm25')} cannot be used with ${named('halfLife')}: it needs the number of each item's ` +
      `ratings before they are weighed`,
    advice: 'Leave the weight at auto, or give another one',
  },
  {
    refused: 'regOffset',
    when: ({ implicitPrefs }) => implicitPrefs,
    message: (named) =>
      `${named('regOffset')} cannot be used with ${named('implicitPrefs')}, whose weights have no ` +
      `standard deviation`,
    advice: 'Leave one of them out',
  },
  {
    refused: 'precision',
    when: ({ precision, implicitPrefs, alpha }) => implicitPrefs && alpha === 0 && precision === 'f16',
    message: (named) =>
      `${named('precision', 'f16')} cannot be used with ${named('alpha', 0)}, whose weights have no ` +
      `roots to divide by`,
    advice: 'Leave the precision at auto',
  },
  {
    refused: 'precision',
    when: ({ precision, implicitPrefs }) => implicitPrefs && precision === 'int8',
    message: (named) =>
      `${named('precision', 'int8')} cannot be used with ${named('implicitPrefs')}, whose weights 8 ` +
      `bits do not hold`,
    advice: 'Leave the precision at auto',
  },
  {
    refused: 'biases',
    when: ({ biases, implicitPrefs }) => implicitPrefs && biases,
    message: (named) =>
      `${named('biases')} cannot be used with ${named('implicitPrefs')}: implicit data have no ` +
      `level to learn`,
    advice: 'Leave one of them out',
  },
  metricNeedsEarlyStop,
  {
    refused: 'earlyStop',
    when: (params) => params.implicitPrefs && rankingMetricOf(params) === undefined,
    message: (named) =>
      `${named('earlyStop')} cannot be used with ${named('implicitPrefs')} on the RMSE, which ` +
      `implicit data do not have`,
    advice: 'Give a ranking metric, such as ndcg@20, as earlyStopMetric',
  },
  {
    refused: 'targetRmse',
    when: ({ implicitPrefs }) => implicitPrefs,
    message: (named) =>
      `${named('targetRmse')} cannot be used with ${named('implicitPrefs')}: implicit data have no test RMSE`,
    advice: 'Leave one of them out',
  },
  {
    refused: 'partitionSums',
    when: ({ partitionSums, nonnegative, solver }) =>
      partitionSums !== 'auto' && partitionSums !== 'equations' && (nonnegative || isExact(solver)),
    message: (named, { partitionSums }) =>
      `${named('partitionSums', partitionSums)} cannot be used with exact solves, which need A`,
    advice: 'Give solver cg without nonnegative, or leave partitionSums at auto',
  },
  {
    refused: 'partitionUsers',
    when: (params) =>
      params.implicitPrefs &&
      rankingMetricOf(params) !== undefined &&
      (requestedGrids(params).users?.p ?? 1) > 1,
    message: (named) =>
      `${named('partitionUsers')} cannot cut the items into vertical parts with ` +
      `${named('earlyStopMetric')}, which ranks all items of implicit data at once`,
    advice: 'Give 1 vertical part, or leave one of them out',
  },
];

/**
 * Default of `regExponent` (ν) for implicit data without `unobservedWeight`. It was chosen in
 * docs/measured/quality.md, Implicit data.
 */
const IMPLICIT_EXPONENT = 0.75;

/**
 * Defaults for implicit data. Values that are `auto` are computed later from the sizes of the data
 * (sizedParams). With the weights of Spark or iALS, α and λ are the values of their authors.
 */
function implicitDefaults({ unobservedWeight, weight }: Partial<AlsParams>): Partial<AlsParams> {
  const start = 'spark';
  if (unobservedWeight !== undefined) return { start, alpha: 1, regParam: 0.003 };
  if (weight === 'spark') return { start, alpha: 1, regParam: 0.1 };
  return { start, regParam: 'auto', alpha: 'auto', regExponent: IMPLICIT_EXPONENT };
}

export const alsTable: ParamTable<AlsParams> = {
  algorithm: 'ALS',
  params: {
    ...commonParams,
    regParam: {
      kind: 'number',
      or: 'auto',
      help: 'λ, multiplied by the number of ratings of the user or item',
      called: 'regParam (λ)',
      least: 0,
      fallback: 'auto',
      defaultText: '0.02; without biases 0.1; implicit: 0.3 α, or 0.003 with --unobserved-weight',
    },
    solver: {
      kind: 'choice',
      help: 'solve rows exactly, by conjugate gradients, or by the faster of the two',
      choices: ['auto', 'cholesky', 'cg'],
      fallback: 'auto',
    },
    cgSteps: {
      kind: 'whole number',
      or: 'auto',
      help: 'steps of conjugate gradients per row; auto: 6 in the first iterations, then 4',
      least: 1,
      most: 1000,
      fallback: 'auto',
    },
    nonnegative: {
      kind: 'toggle',
      help: 'keep all factors at 0 or above (biases may be negative)',
      fallback: false,
    },
    regExponent: {
      kind: 'number',
      help:
        'ν: λ is multiplied by n^ν, where n is the number of ratings of the user or item; 0: the ' +
        'same λ for all',
      called: 'regExponent (ν)',
      least: 0,
      most: 4,
      fallback: 1,
      defaultText: '1; implicit: 0.75, or 1 with --unobserved-weight',
    },
    start: {
      kind: 'choice',
      help:
        "initial user factors: absolute Gaussian values (level; converges faster), or Spark's " +
        'Gaussian values',
      choices: ['level', 'spark'],
      fallback: 'level',
      defaultText: 'level; implicit: spark',
    },
    implicitPrefs: {
      kind: 'toggle',
      help:
        'implicit data (clicks, plays, purchases): a rating is a weight, a pair without a rating is a ' +
        'zero of small weight',
      fallback: false,
    },
    alpha: {
      kind: 'number',
      or: 'auto',
      help: 'α of implicit data: a rating of weight w adds α w to the weight of its pair',
      least: 0,
      fallback: 'auto',
      defaultText: 'auto: by the density of the ratings',
    },
    weight: {
      kind: 'choice',
      help:
        'weight of an implicit rating: |r| (raw), 1 (binary), its logarithm (log), or saturated and ' +
        'divided by popularity (bm25), each divided by its mean; spark: |r| unchanged',
      choices: ['auto', 'spark', 'raw', 'binary', 'log', 'bm25'],
      fallback: 'auto',
      defaultText: 'auto: log',
    },
    unobservedWeight: {
      kind: 'number',
      help: "weight of a pair without a rating, and iALS's λ (n_u + w n)^ν; default: none, as in Spark's form",
      above: 0,
    },
    halfLife: {
      kind: 'text',
      help: 'implicit: weights of ratings halve with each such period before --now, such as 30d (units s, min, h, d, w, y); needs a column of times',
      meaning: DURATION,
      defaultText: 'none: ratings of all ages weigh the same',
    },
    now: {
      kind: 'text',
      help: 'time at which ratings have their whole weight, with --half-life, such as 2024-05-31',
      meaning: 'a time such as 2024-05-31',
      defaultText: "the latest rating's",
    },
    attributeRegParam: {
      kind: 'number',
      help: 'μ of attributes of users or items: the coefficients that predict factors from them keep to 0 as a row with μ ratings does',
      called: 'attributeRegParam (μ)',
      least: 0,
      fallback: 10,
    },
    kernel: {
      kind: 'text',
      help: "GPU kernel that solves the rows; default: the device's choice",
      meaning: 'the name of a GPU kernel',
    },
    partitionUsers: {
      kind: 'text',
      help: 'grid of the ratings while users are solved: p parts of the items, q parts of the users',
      meaning: 'p,q',
    },
    partitionItems: {
      kind: 'text',
      help: 'grid of the ratings while items are solved: p parts of the users, q parts of the items',
      meaning: 'p,q',
    },
    partitionSums: {
      kind: 'choice',
      help:
        'what devices add for vertical parts: normal equations, or vectors in each step of conjugate ' +
        'gradients, computed from the ratings (vectors) or from equations that each device keeps ' +
        '(partial-equations)',
      choices: ['auto', ...sumsOfParts],
      fallback: 'auto',
    },
    partitionGroups: {
      kind: 'text',
      help:
        'devices in each group, such as 4,4: sums of vertical parts are added inside a group first; ' +
        'default: groups by processor socket, if that is faster',
      meaning: 'numbers of devices, n,n',
    },
  },
  rules: alsRules,
  dependent: (given) => {
    const { implicitPrefs = false, biases = !implicitPrefs } = given;
    return {
      ...dependentDefaults(biases),
      ...(implicitPrefs ? implicitDefaults(given) : { regParam: explicitLambda(biases) }),
    };
  },
};

export const alsDefaults: AlsParams = defaultsOf(alsTable);

/** Fills in defaults. Throws UsageError that names parameter and value. */
export function checkAlsParams(given: Partial<AlsParams>, others?: readonly string[]): AlsParams {
  const params = checkParams(alsTable, given, others);
  checkMetric(params);
  requestedGrids(params);
  recencyOf(params);
  return params;
}
