import {
  commonParams,
  type CommonParams,
  checkMetric,
  dependentDefaults,
  explicitLambda,
  metricNeedsEarlyStop,
  noDamping,
  rankingMetricOf,
} from '../params/common.ts';
import { checkParams, defaultsOf, type ParamTable, type Rule } from '../params/table.ts';
import { askedPartitions } from './partitions.ts';
import { isExact } from './exact-solver.ts';

/** Forms of the weights of implicit ratings: see AlsParams.weight. */
export type WeightForm = 'auto' | 'spark' | 'raw' | 'binary' | 'log' | 'bm25';

/** Parameters of ALS, on explicit ratings with weighted-λ regularization or on implicit data. */
export interface AlsParams extends Omit<CommonParams, 'regParam'> {
  /**
   * λ: multiplied by the number of ratings of the row (ALS-WR). `auto`: 0.02, 0.1 without biases; of implicit
   * data 0.3 α, with weights `spark` 0.1, with `unobservedWeight` 0.003. Default 'auto'.
   */
  readonly regParam: number | 'auto';
  /**
   * Solver of A x = b: exact (`cholesky`), f_s steps of conjugate gradients (`cg`), or the faster of the two
   * for each row (`auto`). Default 'auto'.
   */
  readonly solver: 'auto' | 'cholesky' | 'cg';
  /**
   * f_s of cuMF_ALS, Algorithm 1: steps of conjugate gradients for a row, 1 to 1000. `auto`: 6 in the first
   * three iterations, which start far from where they end, and 4 in later ones, which start from the factors
   * before; 6 for implicit data. Default 'auto'.
   *
   */
  readonly cgSteps: number | 'auto';
  /**
   * True keeps all factors >= 0, exactly, by non-negative least squares. Biases are not bounded. Not with
   * solver `cg`. Default false.
   */
  readonly nonnegative: boolean;
  /**
   * ν: a row of n ratings is solved with (λ n^ν + o) I. 1 is weighted-λ (ALS-WR), 0 the same λ for every row
   * (Rendle et al. 2021, On the difficulty of evaluating baselines, section 4); 0 to 4. Default 1.
   *
   */
  readonly regExponent: number;
  /**
   * The users that the first iteration solves items from, of unit norm: without biases `spark`'s zero-mean
   * Gaussian rows take 10 to 25 iterations to find the level of positive ratings; `level` takes their
   * absolute values, which have it after one. Default 'level', and 'spark' for implicit data.
   *
   */
  readonly start: 'spark' | 'level';
  /**
   * True takes ratings as evidence that a user prefers an item, and every pair without a rating as a weak
   * zero: clicks, plays, purchases. Biases are off. Default false.
   */
  readonly implicitPrefs: boolean;
  /**
   * α of implicit data: a rating of weight w adds α w to the weight of its pair. `auto`: (m n / Nz)^0.6, at
   * most 100, for m users, n items and Nz ratings, since a rating counts for more where pairs are rarer; and
   * 1 with weights `spark` or with `unobservedWeight`. Default 'auto'.
   *
   */
  readonly alpha: number | 'auto';
  /**
   * The weight w of an implicit rating r: `raw` |r|, `binary` 1, `log` 1 + ln(1 + |r| / g) with g the
   * geometric mean of |r|, `bm25` |r| / g saturated and divided by the item's popularity (k1 = 1.2, b =
   * 0.75). All are divided by their mean, so that α means the same on any set; `spark` is |r| as it is, and
   * so Spark's and implicit's form. `auto`: `log`. Default 'auto', and `spark` of `ALS.spark()`.
   *
   */
  readonly weight: WeightForm;
  /**
   * Weight w of a pair without a rating, with λ (n_u + w n)^ν for a user of n_u among n items (iALS; Rendle
   * et al. 2021, section 3.3). Without it, the weights are Spark's: 1 for such a pair, and λ n_u^ν. Default:
   * not set, Spark's weights.
   *
   */
  readonly unobservedWeight?: number;
  /** Name of the GPU kernel that solves the rows. Default: the device chooses. */
  readonly kernel?: string;
  /**
   * The grid of R while users are solved, as "p,q": items in p vertical parts, users in q horizontal ones
   * (cuMF, section 4). p is 1, or the q of `partitionItems`. Default: the planner chooses.
   *
   */
  readonly partitionUsers?: string;
  /**
   * The same while items are solved: users in p vertical parts, items in q horizontal ones. Default: the
   * planner chooses.
   */
  readonly partitionItems?: string;
  /**
   * Of a side that is solved from several vertical parts, what their devices add up: `equations`, once f (f +
   * 1) / 2 numbers a row, or `vectors`, f numbers a row in each step of conjugate gradients, with which no A
   * is formed. `auto`: the cheaper. The others choose among grids with vertical parts alone. Default 'auto'.
   *
   */
  readonly partitionSums: 'auto' | 'equations' | 'vectors';
  /**
   * Devices in each group, in their order, such as "2,2": partial sums of vertical parts add up inside groups
   * before they cross (cuMF, Figure 5 b). Default: groups of the machine's sockets, where that takes less
   * time.
   *
   */
  readonly partitionGroups?: string;
}

/** ν of implicit data without `unobservedWeight`: docs/measured/quality.md, Implicit data. */
const IMPLICIT_EXPONENT = 0.75;

/**
 * Defaults of implicit data: `auto` follows from the sizes (sizedParams); Spark's and iALS's weights have
 * their authors' α and λ.
 */
function implicitDefaults({ unobservedWeight, weight }: Partial<AlsParams>): Partial<AlsParams> {
  const start = 'spark';
  if (unobservedWeight !== undefined) return { start, alpha: 1, regParam: 0.003 };
  if (weight === 'spark') return { start, alpha: 1, regParam: 0.1 };
  return { start, regParam: 'auto', alpha: 'auto', regExponent: IMPLICIT_EXPONENT };
}

type Named = Parameters<Rule<AlsParams>['message']>[0];

export const alsTable: ParamTable<AlsParams> = {
  algorithm: 'ALS',
  params: {
    ...commonParams,
    regParam: {
      kind: 'number or auto',
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
      kind: 'whole number or auto',
      help: 'steps of conjugate gradients a row; auto: 6 in the first iterations, then 4',
      least: 1,
      most: 1000,
      fallback: 'auto',
    },
    nonnegative: {
      kind: 'toggle',
      help: 'keep all factors at 0 or above (biases are free)',
      fallback: false,
    },
    regExponent: {
      kind: 'number',
      help: 'ν: λ is multiplied by n^ν, where n are the ratings of the user or item; 0 is the same λ for all',
      called: 'regExponent (ν)',
      least: 0,
      most: 4,
      fallback: 1,
      defaultText: '1; implicit: 0.75, or 1 with --unobserved-weight',
    },
    start: {
      kind: 'choice',
      help: "users to begin with: absolute values of Gaussian rows, which find the ratings' level at once, or Spark's Gaussian rows",
      choices: ['level', 'spark'],
      fallback: 'level',
      defaultText: 'level; implicit: spark',
    },
    implicitPrefs: {
      kind: 'toggle',
      help: 'implicit data (clicks, plays, purchases): a rating is a weight, a pair without one a weak zero',
      fallback: false,
    },
    alpha: {
      kind: 'number or auto',
      help: 'α of implicit data: a rating of weight w adds α w to the weight of its pair',
      least: 0,
      fallback: 'auto',
      defaultText: 'auto: by the density of the ratings',
    },
    weight: {
      kind: 'choice',
      help: 'weight of an implicit rating: |r| (raw), 1 (binary), its logarithm (log), or saturated and divided by popularity (bm25), over their mean; spark: |r| as it is',
      choices: ['auto', 'spark', 'raw', 'binary', 'log', 'bm25'],
      fallback: 'auto',
      defaultText: 'auto: log',
    },
    unobservedWeight: {
      kind: 'number',
      help: "weight of a pair without a rating, and iALS's λ (n_u + w n)^ν; without it Spark's weights",
      above: 0,
    },
    kernel: {
      kind: 'text',
      help: "GPU kernel that solves the rows; without it the device's choice",
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
      help: 'what devices add up of vertical parts: normal equations, or vectors in each step of conjugate gradients',
      choices: ['auto', 'equations', 'vectors'],
      fallback: 'auto',
    },
    partitionGroups: {
      kind: 'text',
      help: 'devices in each group, such as 4,4, in which sums of vertical parts add up before they cross; without it those of the sockets, where that is faster',
      meaning: 'numbers of devices, n,n',
    },
  },
  rules: [
    {
      refused: 'solver',
      when: ({ solver, nonnegative }) => nonnegative && solver === 'cg',
      message: (named) =>
        `${named('solver', 'cg')} cannot act with ${named('nonnegative')}: conjugate gradients do not keep factors >= 0`,
      advice: 'Leave the solver at auto, or leave nonnegative out',
    },
    noDamping,
    {
      refused: 'cgSteps',
      when: ({ nonnegative }) => nonnegative,
      message: (named) => `${named('cgSteps')} does nothing with ${named('nonnegative')}`,
      advice: 'Leave one of them out',
      onlyFlags: true,
    },
    {
      refused: 'cgSteps',
      when: ({ solver }) => isExact(solver),
      message: (named, { solver }) => `${named('cgSteps')} does nothing with ${named('solver', solver)}`,
      advice: 'Leave one of them out',
      onlyFlags: true,
    },
    ...(['alpha', 'unobservedWeight', 'weight'] as const).map((refused) => ({
      refused,
      when: ({ implicitPrefs }: AlsParams) => !implicitPrefs,
      message: (named: Named) =>
        `${named(refused)} acts on implicit data alone, with ${named('implicitPrefs')}`,
      advice: 'Give both, or leave it out',
    })),
    {
      refused: 'regOffset',
      when: ({ implicitPrefs }) => implicitPrefs,
      message: (named) =>
        `${named('regOffset')} cannot act with ${named('implicitPrefs')}, whose weights have no standard deviation`,
      advice: 'Leave one of them out',
    },
    {
      refused: 'precision',
      when: ({ precision, implicitPrefs, alpha }) => implicitPrefs && alpha === 0 && precision === 'f16',
      message: (named) =>
        `${named('precision', 'f16')} cannot act with ${named('alpha', 0)}, whose weights have no roots to divide by`,
      advice: 'Leave the precision at auto',
    },
    {
      refused: 'precision',
      when: ({ precision, implicitPrefs }) => implicitPrefs && precision === 'int8',
      message: (named) =>
        `${named('precision', 'int8')} cannot act with ${named('implicitPrefs')}, whose weights 8 bits do not hold`,
      advice: 'Leave the precision at auto',
    },
    {
      refused: 'biases',
      when: ({ biases, implicitPrefs }) => implicitPrefs && biases,
      message: (named) =>
        `${named('biases')} cannot act with ${named('implicitPrefs')}: implicit data have no level to learn`,
      advice: 'Leave one of them out',
    },
    metricNeedsEarlyStop,
    {
      refused: 'earlyStop',
      when: (params) => params.implicitPrefs && rankingMetricOf(params) === undefined,
      message: (named) =>
        `${named('earlyStop')} cannot act with ${named('implicitPrefs')} on the RMSE, which implicit data do not have`,
      advice: 'Give a ranking metric, such as ndcg@20, as earlyStopMetric',
    },
    {
      refused: 'targetRmse',
      when: ({ implicitPrefs }) => implicitPrefs,
      message: (named) =>
        `${named('targetRmse')} cannot act with ${named('implicitPrefs')}: implicit data have no test RMSE`,
      advice: 'Leave one of them out',
    },
    {
      refused: 'partitionSums',
      when: ({ partitionSums, nonnegative, solver }) =>
        partitionSums === 'vectors' && (nonnegative || isExact(solver)),
      message: (named) => `${named('partitionSums', 'vectors')} cannot act with exact solves, which need A`,
      advice: 'Give solver cg without nonnegative, or leave partitionSums at auto',
    },
    {
      refused: 'partitionUsers',
      when: (params) =>
        params.implicitPrefs &&
        rankingMetricOf(params) !== undefined &&
        (askedPartitions(params).users?.p ?? 1) > 1,
      message: (named) =>
        `${named('partitionUsers')} cannot cut the items into vertical parts with ${named('earlyStopMetric')}, which ranks all items of implicit data at once`,
      advice: 'Give 1 vertical part, or leave one of them out',
    },
  ],
  dependent: (given) => {
    const { implicitPrefs = false, biases = !implicitPrefs } = given;
    return {
      ...dependentDefaults(biases),
      ...(implicitPrefs ? implicitDefaults(given) : { regParam: explicitLambda(biases) }),
    };
  },
};

export const alsDefaults: AlsParams = defaultsOf(alsTable);

/** The parameters with defaults filled in; throws UsageError naming parameter and value. */
export function checkAlsParams(given: Partial<AlsParams>, others?: readonly string[]): AlsParams {
  const params = checkParams(alsTable, given, others);
  checkMetric(params);
  askedPartitions(params);
  return params;
}
