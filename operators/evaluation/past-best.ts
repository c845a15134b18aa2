import type { TrainingIteration } from '../training/iteration.ts';
import type { TrainingWarning } from './rating-warnings.ts';

/**
 * A value of the final model is noticeably worse than the best iteration's if the difference is at least
 * `part` of the best value, and at least `chance` / √n for n test pairs. In runs that do not overfit the
 * difference is smaller (docs/measured/quality.md).
 */
const LEAST = { error: { part: 0.005, chance: 0.5 }, ranking: { part: 0.02, chance: 6 } } as const;

/**
 * Smaller differences of errors are ignored; a fraction of the error of predicting the mean. If errors are
 * near 0, float32 rounding alone causes differences.
 */
const LEAST_OF_MEAN = 0.001;

/**
 * An early stop that ends the training after fewer iterations without a better value is never recommended: a
 * single worse iteration may be chance.
 */
const LEAST_PATIENCE = 2;

export interface MeasuredRun {
  readonly iterations: readonly TrainingIteration[];
  /** The iteration whose factors the model has. */
  readonly bestIteration: number;
  readonly called: 'iteration' | 'epoch';
  /** Number of known pairs in the validation set. */
  readonly pairs: number;
  /** RMSE of the mean rating on these pairs. */
  readonly meanRmse?: number | undefined;
}

interface Course {
  readonly name: string;
  /** Values by iteration. */
  readonly values: readonly number[];
  readonly kind: keyof typeof LEAST;
}

/**
 * A warning for each measure on the validation set that was noticeably better after an earlier iteration than
 * after the iteration whose factors the model has: the run overfits, and early stop would keep the best
 * iteration.
 */
export function pastBestWarnings(run: MeasuredRun): TrainingWarning[] {
  const kept = run.iterations.findIndex(({ iteration }) => iteration === run.bestIteration);
  return coursesOf(run)
    .map((course) => pastBest(course, run, kept))
    .filter((warning) => warning !== undefined);
}

/** The validation measures that every iteration has, each with its values in the order of iterations. */
function coursesOf({ iterations }: MeasuredRun): Course[] {
  const errors = valuesOf(iterations, ({ testRmse }) => testRmse);
  const names = Object.keys(iterations.at(-1)?.testMetrics ?? {});
  const rankings = names.map((name) => ({
    name,
    values: valuesOf(iterations, ({ testMetrics }) => testMetrics?.[name]),
    kind: 'ranking' as const,
  }));
  return [{ name: 'RMSE', values: errors, kind: 'error' as const }, ...rankings].filter(
    ({ values }) => values.length > 1,
  );
}

/** Empty if any iteration has no value. */
function valuesOf(
  iterations: readonly TrainingIteration[],
  of: (one: TrainingIteration) => number | undefined,
): number[] {
  const values = iterations.map(of).filter((value) => value !== undefined);
  return values.length === iterations.length ? values : [];
}

function pastBest(
  { name, values, kind }: Course,
  { iterations, called, pairs, meanRmse = 0 }: MeasuredRun,
  kept: number,
): TrainingWarning | undefined {
  const losses = values.map((value) =>
    Number.isNaN(value) ? Number.POSITIVE_INFINITY : kind === 'error' ? value : -value,
  );
  const at = losses.indexOf(Math.min(...losses));
  const [best, last] = [values[at], values[kept]];
  const [worse, { part: least, chance }] = [losses[kept] - losses[at], LEAST[kind]];
  const part = worse / best;
  if (
    !(part > Math.max(least, chance / Math.sqrt(pairs))) ||
    (kind === 'error' && worse < LEAST_OF_MEAN * meanRmse)
  )
    return undefined;
  const by = Number.isFinite(part)
    ? `${(100 * part).toFixed(1)} % ${kind === 'error' ? 'above' : 'below'} it`
    : 'no finite number beside it';
  const text = `the best test ${name}, ${best.toFixed(4)}, was after ${called} ${iterations[at].iteration}, and the model's, ${last.toFixed(4)}, is ${by}: later ${called}s fit the training ratings more and others less`;
  const metric = kind === 'error' ? '' : ` and earlyStopMetric: '${name}'`;
  return {
    code: 'past-best',
    text: `${text}. Use earlyStop: ${patienceFor(losses, at)}${metric}, which keeps the best`,
  };
}

/**
 * The smallest value of `earlyStop` with which the training would still have reached iteration `best`: the
 * longest gap between two consecutive iterations that were each the best so far.
 */
function patienceFor(losses: readonly number[], best: number): number {
  let [least, since, patience] = [Number.POSITIVE_INFINITY, 0, LEAST_PATIENCE];
  for (const loss of losses.slice(0, best + 1)) {
    since++;
    if (loss >= least) continue;
    patience = Math.max(patience, Number.isFinite(least) ? since : 1);
    [least, since] = [loss, 0];
  }
  return patience;
}
