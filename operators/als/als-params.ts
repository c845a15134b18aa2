import type { CommonParams } from '../params/common.ts';
import type { SumsOfParts } from './partitions.ts';

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
