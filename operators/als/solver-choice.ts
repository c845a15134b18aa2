import { MAXIMUM_FORMED_RANK } from '../params/common.ts';
import type { RatingsProfile } from '../planner/sizes.ts';
import type { ExactSolver, SolverChoice } from '../tasks/task-types.ts';
import type { AlsParams } from './als-params.ts';

/** Larger than the number of ratings of any row. */
export const ALL_ROWS = 2 ** 31 - 1;

/**
 * Rates of the CPU kernels in GFLOP/s on one core, measured by bench/cases/kernels.ts; only their ratios matter
 * here.
 */
const rates = { normalEquations: 40, cholesky: 25, conjugateGradient: 33 };

/**
 * Steps of CG if `cgSteps` is `auto`: `first`. Where later iterations may take fewer (see stepsOf), only the
 * first `iterations` take that number, since their previous factors are far from the solution.
 */
const AUTO = { first: 6, iterations: 3, later: 4 } as const;

/** The largest f at which a row's Cholesky costs a GPU no more than its CG steps. */
const EXACT_ON_GPU = 32;

type Steps = Pick<AlsParams, 'rank' | 'cgSteps' | 'implicitPrefs' | 'regOffset'>;

/** Counts of a set of ratings. */
type Counts = Pick<RatingsProfile, 'users' | 'items' | 'ratings'>;

/**
 * If `regOffset` is at least this, the regularization keeps every row near the mean, so that few steps reach
 * its solution. The unit is one standard deviation of the ratings.
 */
const HELD = 1;

/**
 * Few steps also suffice if the rows of the larger side have on average at least this number of ratings per
 * feature.
 */
const RATED = 2;

/** The largest number of CG steps of any iteration. */
export function mostSteps({ cgSteps }: Pick<AlsParams, 'cgSteps'>): number {
  return cgSteps === 'auto' ? AUTO.first : cgSteps;
}

/**
 * True if later iterations need fewer steps: `regOffset` keeps rows near the mean, or rows have on average
 * two ratings or more for each feature. On sparser data with less regularization, fewer steps changed the
 * test RMSE after ten iterations by up to 0.003 (bench/results, `cg-steps-auto`).
 */
export function takesFewer(
  { rank, cgSteps, implicitPrefs, regOffset }: Steps,
  { users, items, ratings }: Counts,
): boolean {
  return (
    cgSteps === 'auto' &&
    !implicitPrefs &&
    (regOffset >= HELD || ratings >= RATED * rank * Math.max(users, items))
  );
}

/** Steps of CG in an iteration; iterations count from 1. */
export function stepsOf(params: Steps, counts: Counts, iteration: number): number {
  return takesFewer(params, counts) && iteration > AUTO.iterations ? AUTO.later : mostSteps(params);
}

/**
 * Chooses the solver of each row. The cost in operations, for a row of n ratings and f features:
 *
 * - exact: n f (f + 1) + 2 n f for the normal equations, and f³/3 + 4 f² for Cholesky
 * - matrix-free CG: 4 n f for the first residual and for each of its f_s steps, and 2 n f for b
 *
 * The exact solve costs more for a short row (its f³ is fixed) and, from f of about 40 on, for any row. A GPU
 * has other rates, and solves all rows by the same solver. Non-negative factors have only one solver. The
 * choice depends only on f and f_s, so the same parameters always give the same model. `fewer`: later
 * iterations take fewer steps.
 */
export function chooseSolver(
  params: Pick<AlsParams, 'rank' | 'solver' | 'cgSteps' | 'nonnegative'>,
  kind: 'cpu' | 'gpu' = 'cpu',
  fewer = false,
): SolverChoice & { readonly kernel: string; readonly reason: string } {
  const { rank: f, solver, nonnegative } = params;
  const cgSteps = mostSteps(params);
  const named = fewer ? `${cgSteps}, then ${AUTO.later}` : String(cgSteps);
  if (nonnegative) {
    const reason =
      `nonnegative: each row is the exact minimum over x >= 0, by block principal pivoting ` +
      `${kind === 'gpu' ? 'on swept matrices in float32' : 'in float64'} on its formed A; CG cannot ` +
      `keep x >= 0`;
    return { cgBelow: 0, cgSteps, exact: 'nonnegative', kernel: 'nnls', reason };
  }
  if (isExact(solver))
    return { cgBelow: 0, cgSteps, exact: solver, kernel: solver, reason: `solver ${solver}, as requested` };
  const cg = (reason: string) => ({ cgBelow: ALL_ROWS, cgSteps, kernel: `cg(${named})`, reason });
  if (solver === 'cg') return cg(`solver cg, ${named} steps, as requested`);
  if (f > MAXIMUM_FORMED_RANK)
    return cg(
      `solver auto: CG for all rows, since f = ${f} > ${MAXIMUM_FORMED_RANK}, above which no A of f² ` +
        `numbers is formed`,
    );
  if (kind === 'gpu' && f > EXACT_ON_GPU)
    return cg(
      `solver auto on a GPU: ${named} CG steps for all rows, since f = ${f} > ${EXACT_ON_GPU} and ` +
        `Cholesky costs f³/3 a row`,
    );
  if (kind === 'gpu') {
    const reason = `solver auto on a GPU: Cholesky for all rows, since f = ${f} <= ${EXACT_ON_GPU}`;
    return { cgBelow: 0, cgSteps, kernel: 'cholesky', reason };
  }
  const padded = Math.ceil(f / 8) * 8;
  const exactPerRating = (padded * (padded + 1) + 2 * padded) / rates.normalEquations;
  const exactPerRow = (padded ** 3 / 3 + 4 * padded ** 2) / rates.cholesky;
  const cgPerRating = (padded * (2 + 4 * (cgSteps + 1))) / rates.conjugateGradient;
  const costs =
    `at f = ${f} a rating costs about ${exactPerRating.toFixed(0)} ns in an exact solve and ` +
    `${cgPerRating.toFixed(0)} ns in ${cgSteps} CG steps; an exact solve costs ` +
    `${(exactPerRow / 1000).toFixed(1)} µs more per row`;
  if (cgPerRating <= exactPerRating) return cg(`solver auto: CG for all rows; ${costs}`);
  const cgBelow = Math.ceil(exactPerRow / (cgPerRating - exactPerRating));
  return {
    cgBelow,
    cgSteps,
    kernel: `cg(${named}) below ${cgBelow}, else cholesky`,
    reason: `solver auto: CG for rows under ${cgBelow} ratings, Cholesky for the others; ${costs}`,
  };
}

/** The fields of the choice that are parameters of the tasks. */
export function solverParams({ cgBelow, cgSteps, exact }: SolverChoice) {
  return { cgBelow, cgSteps, ...(exact === undefined ? {} : { exact }) };
}

/** True for values of `solver` that solve every row exactly. */
export function isExact(solver: 'auto' | 'cg' | ExactSolver): solver is ExactSolver {
  return solver !== 'auto' && solver !== 'cg';
}
