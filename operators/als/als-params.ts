import { UsageError } from '../../engine/errors.ts';
import { counted } from '../../engine/format.ts';
import type { ValueWeight } from '../../engine/numbers/value-index.ts';
import { type CommonParams, explicitLambda } from '../params/common.ts';
import { recencyOf } from '../ratings/rows/recency.ts';

/** Forms of the weights of implicit ratings: see AlsParams.weight. */
export type WeightForm = 'auto' | 'spark' | 'raw' | 'binary' | 'log' | 'bm25';

/** Parameters of ALS, on explicit ratings with weighted-λ regularization or on implicit data. */
export interface AlsParams extends Omit<CommonParams, 'regParam'> {
  /**
   * The regularization λ, multiplied by the number of ratings of the row (ALS-WR). `auto`: 0.02, or 0.1
   * without biases; for implicit data 0.3 α, with weights `spark` 0.1, with `unobservedWeight` 0.003. Default
   * 'auto'.
   */
  readonly regParam: number | 'auto';
  /**
   * Solver of A x = b: exact (`cholesky`), f_s steps of conjugate gradients (`cg`), or the faster of the two
   * for each row (`auto`). With `nonnegative`, `auto` and `cholesky` both mean the exact non-negative solver.
   * Default 'auto'.
   */
  readonly solver: 'auto' | 'cholesky' | 'cg';
  /**
   * f_s of cuMF_ALS, Algorithm 1: steps of conjugate gradients for a row, 1 to 1000. `auto`: 6 in the first
   * three iterations, and 4 in later ones, whose previous factors are closer to the solution; 6 for implicit
   * data. Default 'auto'.
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
   */
  readonly regExponent: number;
  /**
   * The initial user factors, rows of norm 1 from which the first iteration solves the items. `level` takes
   * absolute values of Gaussian numbers: products with them are positive, so one iteration finds the level of
   * positive ratings. Without biases, `spark`'s Gaussian numbers of mean 0 take 10 to 25 iterations for that.
   * Default 'level', and 'spark' for implicit data.
   */
  readonly start: 'spark' | 'level';
  /**
   * True treats ratings as evidence that a user prefers an item, and every pair without a rating as a weak
   * zero: clicks, plays, purchases. Biases are off. Default false.
   */
  readonly implicitPrefs: boolean;
  /**
   * α of implicit data: a rating of weight w adds α w to the weight of its pair. `auto`: (m n / Nz)^0.6, at
   * most 100, for m users, n items and Nz ratings, since a rating says more where ratings are rarer; 1 with
   * weights `spark` or with `unobservedWeight`. Default 'auto'.
   */
  readonly alpha: number | 'auto';
  /**
   * The weight w of an implicit rating r:
   *
   * - `raw`: |r|
   * - `binary`: 1
   * - `log`: 1 + ln(1 + |r| / g) with g the geometric mean of |r|
   * - `bm25`: |r| / g, saturated and divided by the item's popularity (k1 = 1.2, b = 0.75)
   * - `spark`: |r| unscaled, the form of Spark and implicit
   * - `auto`: `log`
   *
   * All but `spark` are divided by their mean, so that α means the same for any data set. Default 'auto', and
   * `spark` for `ALS.spark()`.
   */
  readonly weight: WeightForm;
  /**
   * Weight w of a pair without a rating. λ is then multiplied by (n_u + w n)^ν for a user who rated n_u of n
   * items (iALS; Rendle et al. 2021, section 3.3). If it is not set, the weights are Spark's: 1 for such a
   * pair, and λ n_u^ν. Default: not set.
   */
  readonly unobservedWeight?: number;
  /**
   * The half-life of implicit ratings, such as '30d' (units s, min, h, d, w, y): a rating's weight halves with
   * each such period before `now`. Needs a column of times. Default 'none': ratings of all ages weigh the same.
   */
  readonly halfLife?: string;
  /**
   * The time at which ratings have their whole weight, with `halfLife`: an ISO time such as '2024-05-31', or a
   * number since 1970. Default: the time of the latest rating.
   */
  readonly now?: string;
  /**
   * μ, for attributes of users or items: how closely the coefficients that predict factors from attributes keep
   * to 0, as a row with μ ratings does. Rows are drawn to these predictions in place of zero: the loss has
   * λ n^ν ‖x - A f‖² and λ μ ‖A‖². Default 10.
   */
  readonly attributeRegParam: number;
  /** Name of the GPU kernel that solves the rows. Default: the device chooses. */
  readonly kernel?: string;
  /**
   * The grid of R while users are solved, as "p,q": items in p vertical parts, users in q horizontal ones
   * (cuMF, section 4). p is 1, or the q of `partitionItems`. Default: the planner chooses.
   */
  readonly partitionUsers?: string;
  /**
   * Like `partitionUsers`, while items are solved: users in p vertical parts, items in q horizontal ones.
   * Default: the planner chooses.
   */
  readonly partitionItems?: string;
  /**
   * If a side is solved from several vertical parts of the other side: the sums that devices exchange.
   * `equations`: f (f + 1) / 2 numbers a row, once. `vectors`: f numbers a row in each step of conjugate
   * gradients, without forming A. `partial-equations`: the same numbers, from the part of A that each device
   * forms from its ratings and keeps. `auto`: the fastest. Any other value limits the planner to grids with
   * vertical parts. Default 'auto'.
   */
  readonly partitionSums: 'auto' | SumsOfParts;
  /**
   * The number of devices in each group, such as "2,2": partial sums of vertical parts are added inside
   * groups first (cuMF, Figure 5 b). Default: one group per processor socket, if that takes less time.
   */
  readonly partitionGroups?: string;
}

/**
 * The kinds of sums that devices exchange if the fixed side is cut into vertical parts: normal equations, or
 * a vector per row in each step of conjugate gradients. Each device computes its vectors from its ratings
 * (`vectors`), or from the equations that it formed from them once (`partial-equations`).
 */
export const sumsOfParts = ['equations', 'vectors', 'partial-equations'] as const;

export type SumsOfParts = (typeof sumsOfParts)[number];

/**
 * Numbers of parts in a half-iteration: p vertical parts of the fixed side, q horizontal parts of the solved
 * side (cuMF, section 4).
 */
interface RequestedPartition {
  readonly p: number;
  readonly q: number;
}

/**
 * The numbers of parts that the caller's parameters request, for the half-iterations that solve users and
 * items, and the kind of sums that devices exchange.
 */
export interface RequestedGrids {
  readonly users?: RequestedPartition;
  readonly items?: RequestedPartition;
  readonly sums?: SumsOfParts;
  /** Number of devices in each group; sums are added inside groups first. */
  readonly groups?: readonly number[];
}

const names = { users: 'partitionUsers', items: 'partitionItems' } as const;

/**
 * Reads the requested numbers of parts from the parameters. Throws UsageError for requests that no plan can
 * satisfy.
 */
export function requestedGrids(
  params: Pick<AlsParams, 'partitionUsers' | 'partitionItems' | 'partitionSums' | 'partitionGroups'>,
): RequestedGrids {
  const [users, items] = (['users', 'items'] as const).map((side) => parse(names[side], params[names[side]]));
  requireMatching('partitionUsers', users, items);
  requireMatching('partitionItems', items, users);
  const { partitionSums: sums } = params;
  const groups = groupsOf(params.partitionGroups);
  const ofVertical =
    sums === 'auto' ? groups && `partitionGroups ${params.partitionGroups}` : `partitionSums ${sums}`;
  if (ofVertical !== undefined && users?.p === 1 && items?.p === 1)
    throw new UsageError(
      `${ofVertical} acts only if a side is solved from vertical parts, and both partitions have 1`,
      { advice: 'Ask for several vertical parts, or leave it out' },
    );
  return {
    ...(users ? { users } : {}),
    ...(items ? { items } : {}),
    ...(sums === 'auto' ? {} : { sums }),
    ...(groups ? { groups } : {}),
  };
}

/**
 * Throws UsageError if both sides are requested and the vertical parts of one half-iteration are not the
 * parts in which the other half-iteration solves that side.
 */
function requireMatching(
  name: 'partitionUsers' | 'partitionItems',
  one: RequestedPartition | undefined,
  other: RequestedPartition | undefined,
): void {
  if (one === undefined || other === undefined || one.p === 1 || one.p === other.q) return;
  const solved = name === 'partitionUsers' ? 'items' : 'users';
  throw new UsageError(
    `${name} ${one.p},${one.q} has ${one.p} vertical parts, but the ${solved} are solved in ${other.q}`,
    {
      advice: `Give 1 or ${other.q} vertical parts: a fixed side is whole, or in the parts in which it is solved`,
    },
  );
}

/** Throws UsageError if groups do not add up to the number of devices. */
export function requireGroupsOf({ groups }: RequestedGrids, devices: number): void {
  if (groups === undefined) return;
  const all = groups.reduce((sum, count) => sum + count, 0);
  if (all !== devices || groups.length === 1)
    throw new UsageError(
      `partitionGroups ${groups.join(',')} has ${counted(all, 'device')} in ${counted(groups.length, 'group')}, and ${counted(devices, 'device')} ${devices === 1 ? 'computes' : 'compute'}`,
      {
        phase: 'plan',
        advice:
          devices < 3
            ? 'Leave it out: groups take three devices or more'
            : 'Give the devices of two or more groups, in their order',
      },
    );
}

function groupsOf(text: string | undefined): readonly number[] | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,2}(,[1-9]\d{0,2})*$/.test(text))
    throw new UsageError(`partitionGroups must be whole numbers from 1 on, got ${JSON.stringify(text)}`, {
      advice: 'Give the number of devices in each group, such as 2,2',
    });
  return text.split(',').map(Number);
}

/** Throws UsageError for more parts than a side has rows. */
export function requireRowsForParts(
  requested: RequestedGrids,
  rows: Readonly<Record<'users' | 'items', number>>,
): void {
  for (const [side, fixed] of [
    ['users', 'items'],
    ['items', 'users'],
  ] as const) {
    const one = requested[side];
    if (one === undefined) continue;
    const text = `${names[side]} ${one.p},${one.q}`;
    const advice = 'Ask for fewer parts, or leave them to the planner';
    if (one.q > rows[side])
      throw new UsageError(
        `${text} has ${counted(one.q, 'part')} of ${counted(rows[side], side.slice(0, -1))}`,
        { phase: 'plan', advice },
      );
    if (one.p > rows[fixed])
      throw new UsageError(
        `${text} has ${counted(one.p, 'vertical part')} of ${counted(rows[fixed], fixed.slice(0, -1))}`,
        { phase: 'plan', advice },
      );
  }
}

function parse(name: string, text: string | undefined): RequestedPartition | undefined {
  if (text === undefined) return undefined;
  const [p, q] = /^\d{1,7},\d{1,7}$/.test(text) ? text.split(',').map(Number) : [0, 0];
  if (p < 1 || q < 1)
    throw new UsageError(`${name} must be two whole numbers from 1 on, p,q, got ${JSON.stringify(text)}`, {
      advice: 'Give vertical parts of the fixed side and horizontal parts of the solved one, such as 1,4',
    });
  return { p, q };
}

/**
 * ALS parameters in which every `auto` that depends on the sizes of the data is replaced by a value: λ, and
 * for implicit data α and the formula for weights.
 */
export interface SizedAlsParams extends AlsParams {
  readonly regParam: number;
}

/** The form of weights; `auto` means `log`. */
export function knownForm({ weight }: Pick<AlsParams, 'weight'>): ValueWeight['form'] {
  return weight === 'auto' ? 'log' : weight;
}

/** The half-life of the ratings with the form of their weights; undefined without one. */
export function wantedRecency(params: AlsParams) {
  const [recency, form] = [recencyOf(params), knownForm(params)];
  return recency === undefined || form === 'bm25' ? undefined : { ...recency, form };
}

/** m, n and Nz. */
interface RatingSizes {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
}

/**
 * Defaults for implicit data: α = (m n / Nz)^DENSITY, at most MOST, for m users, n items and Nz ratings; and
 * λ = SHARE α. Chosen over 18 data sets: docs/measured/quality.md, Implicit data.
 */
const DENSITY = 0.6;
const MOST = 100;
const SHARE = 0.3;

/** Replaces the parameters that are `auto` by values for ratings of these sizes. */
export function sizedParams(params: AlsParams, { users, items, ratings }: RatingSizes): SizedAlsParams {
  const { implicitPrefs, biases, regParam } = params;
  if (!implicitPrefs) return { ...params, regParam: regParam === 'auto' ? explicitLambda(biases) : regParam };
  const byDensity = () => rounded(Math.min(MOST, ((users * items) / Math.max(1, ratings)) ** DENSITY));
  const alpha = params.alpha === 'auto' ? byDensity() : params.alpha;
  return {
    ...params,
    weight: knownForm(params),
    alpha,
    regParam: regParam === 'auto' ? rounded(SHARE * alpha) : regParam,
  };
}

/** Three digits, so that plans and models show round numbers. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
