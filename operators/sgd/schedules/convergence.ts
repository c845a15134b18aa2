import { devicesOf } from './gpu-schedules.ts';
import type { SgdSchedule } from './schedule.ts';

/**
 * For parallel workers without locks. In cuMF_SGD's own test on Hugewiki (i x j blocks), s workers converged
 * for s below a twentieth of min(m/i, n/j), and did not converge above.
 */
const SAFE_PART = 20;

/**
 * The largest number of workers (teams of threads) for each column on a GPU without a warning. It is larger
 * than for CPU threads, since most teams wait for memory at any time. 3.8 teams for each column cost 0.0015
 * of RMSE at Netflix's shape.
 */
const GPU_TEAMS_A_COLUMN = 4;

/**
 * An estimate of how often parallel workers step the same column, and the limits by cuMF_SGD, section 5.5.
 */
export interface ConvergenceReport {
  /** s: workers that step on one block at the same time. */
  readonly workers: number;
  /**
   * `leastSide`: min(⌊m/i⌋, ⌊n/j⌋), the smaller side of a block, which must be far above s. `bound`: the
   * largest s without a warning, a twentieth of `leastSide`, or on a GPU four times it.
   */
  readonly leastSide: number;
  readonly bound: number;
  /**
   * s Σ (n_v / Nz)² over the columns: the expected number of other workers that step a worker's column at the
   * same time. If the numbers of ratings of the columns are not known, it is a lower bound.
   */
  readonly collisionRate: number;
  readonly text: string;
  /** Set if the schedule exceeds the limits within which the paper found convergence. */
  readonly warning?: string;
}

export interface ConvergenceProblem {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  /**
   * Number of ratings of each item and of each user, if known; otherwise all are assumed equal, which gives
   * the lowest possible rate.
   */
  readonly itemCounts?: ArrayLike<number>;
  readonly userCounts?: ArrayLike<number>;
}

/**
 * Compares the number of parallel workers s with its limits. Hogwild! converges for s << min(⌊m/i⌋, ⌊n/j⌋)
 * (section 5.5.1). In schedules without conflicts each worker has its own block. These need i, j >= 2 s,
 * since with fewer bands the order of blocks is hardly random (section 5.5.2, Figures 15 and 16).
 */
export function convergenceReport(problem: ConvergenceProblem, schedule: SgdSchedule): ConvergenceReport {
  const { users, items } = problem;
  const { kind, rowBands, columnBands, deviceBlocks, precision, rows } = schedule;
  const [userBands, itemBands] = rows === 'users' ? [rowBands, columnBands] : [columnBands, rowBands];
  const leastSide = Math.min(Math.floor(users / userBands), Math.floor(items / itemBands));
  const onGpu = precision !== undefined;
  const bounds = { leastSide, bound: onGpu ? GPU_TEAMS_A_COLUMN * leastSide : leastSide / SAFE_PART };
  const collides = kind === 'hogwild' || kind === 'tile' || deviceBlocks !== undefined;
  return collides ? ofCollisions(problem, schedule, bounds) : ofBands(schedule, bounds);
}

type SideBounds = Pick<ConvergenceReport, 'leastSide' | 'bound'>;

/** Report for workers whose blocks share no row and no column. */
function ofBands(
  { kind, rowBands, columnBands, workers: s }: SgdSchedule,
  bounds: SideBounds,
): ConvergenceReport {
  const few = Math.min(rowBands, columnBands) < 2 * s && !(kind === 'wavefront' && columnBands >= 2 * s);
  const text =
    `no two of the s = ${s} workers share a row or a column, so none of their steps collide: a block ` +
    `has one worker at a time; more than one would have to be far fewer than min(⌊m/i⌋, ⌊n/j⌋) = ` +
    `${bounds.leastSide}`;
  const warning =
    `the grid of ${rowBands} x ${columnBands} blocks has fewer than 2 s = ${2 * s} bands, so the order ` +
    `of blocks is hardly random (cuMF_SGD, Figure 15): use fewer workers`;
  return { ...bounds, workers: 1, collisionRate: 0, text, ...(few && { warning }) };
}

/** Report for workers that may step the same column at the same time. */
function ofCollisions(
  { users, items, ratings, itemCounts, userCounts }: ConvergenceProblem,
  schedule: SgdSchedule,
  bounds: SideBounds,
): ConvergenceReport {
  const { workers, deviceBlocks } = schedule;
  const { leastSide, bound } = bounds;
  const onGpu = schedule.precision !== undefined;
  // A block on a GPU has only ratings of its own columns.
  const parts = deviceBlocks ? schedule.columnBands : 1;
  const [columns, counts, symbol] =
    schedule.rows === 'users' ? ([items, itemCounts, 'n_v'] as const) : ([users, userCounts, 'n_u'] as const);
  const collisionRate =
    parts * workers * (counts === undefined ? 1 / columns : sumOfSquares(counts) / ratings ** 2);
  const digits = collisionRate < 0.1 ? collisionRate.toExponential(1) : collisionRate.toPrecision(2);
  const rate = `${counts === undefined ? 'at least ' : ''}${digits}`;
  const limit = onGpu
    ? `most of which wait for memory at any time, so that up to four times min(⌊m/i⌋, ⌊n/j⌋) = ` +
      `${leastSide} are allowed`
    : `which must be far below min(⌊m/i⌋, ⌊n/j⌋) = ${leastSide}: a twentieth of it is ${format(bound)}`;
  const apart = devicesOf(schedule) > 1 ? 'no two GPUs share a row or a column, and ' : '';
  const where = deviceBlocks ? `${apart}in a block ` : '';
  const text =
    `${where}s = ${workers} workers, ${limit}; expected collisions ${parts > 1 ? `${parts} ` : ''}s Σ ` +
    `(${symbol}/Nz)² = ${rate} a step`;
  const many = workers > bound && workers > 1 ? manyWorkers(workers, leastSide, onGpu) : undefined;
  const warning = fewSegments(schedule) ?? many;
  return { ...bounds, workers, collisionRate, text, ...(warning !== undefined && { warning }) };
}

/** An item with at least this share of all ratings raises the loss noticeably. */
const DOMINANT_PART = 0.25;

/**
 * A warning about an item with a large share of all ratings; undefined if there is none, or counts are not
 * known.
 */
export function dominantItem({
  ratings,
  itemCounts = [],
}: Pick<ConvergenceProblem, 'ratings' | 'itemCounts'>): string | undefined {
  let most = 0;
  for (let v = 0; v < itemCounts.length; v++) most = Math.max(most, itemCounts[v]);
  if (itemCounts.length === 1 || most < DOMINANT_PART * ratings) return undefined;
  return (
    `one item has ${((100 * most) / ratings).toFixed(0)} % of the ratings: the last of them decide its ` +
    `factors after an epoch, so with any schedule the loss may rise by a tenth and the epoch may be ` +
    `run again; use a smaller learningRate, or ALS`
  );
}

function manyWorkers(workers: number, leastSide: number, onGpu: boolean): string {
  return (
    `s = ${workers} workers are more than ${onGpu ? 'four times' : 'a twentieth of'} min(⌊m/i⌋, ⌊n/j⌋) ` +
    `= ${leastSide}, where Hogwild! may not converge (cuMF_SGD, section 5.5.1): use ` +
    `${onGpu ? 'the schedule wavefront' : 'fewer workers, or the schedule blocks'}`
  );
}

/**
 * The rule i, j >= 2 s for several GPUs: with fewer than two segments of columns for each GPU, the order of
 * blocks is hardly random.
 */
function fewSegments(schedule: SgdSchedule): string | undefined {
  const { deviceBlocks, rowBands, columnBands } = schedule;
  if (deviceBlocks === undefined || devicesOf(schedule) === 1 || columnBands >= 2 * rowBands)
    return undefined;
  return (
    `the grid of ${rowBands} x ${columnBands} blocks has fewer than 2 segments for each of ${rowBands} ` +
    `GPUs, so the order of blocks is hardly random and GPUs wait for each other (cuMF_SGD, Figure ` +
    `15): use fewer GPUs`
  );
}

function sumOfSquares(counts: ArrayLike<number>): number {
  let sum = 0;
  for (let v = 0; v < counts.length; v++) sum += counts[v] ** 2;
  return sum;
}

function format(value: number): string {
  return value < 10 ? value.toFixed(1) : Math.floor(value).toLocaleString('en');
}
