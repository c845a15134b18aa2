import type { Place } from '../../../engine/plan/place.ts';
import type { DataUses, RowRange, Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import { factorBytes } from '../../planner/sizes.ts';
import { evenRanges } from '../../ratings/row-ranges.ts';
import { rankingMetricOf } from '../../params/common.ts';
import { depthOf, parseMetric } from '../../evaluation/ranking/ranking-metrics.ts';
import type { SizedAlsParams } from '../als-params.ts';
import type { Side } from '../plan/problem.ts';
import { unobservedWeightOf } from './weights.ts';

/** Number of rows of a Gram matrix that one task computes, on a device whose passes are cut into tasks. */
const GRAM_ROWS = 16;

/**
 * Names of a side's data sets for implicit data: its Gram matrix, the Gram matrices of its parts, and the
 * numbers that are added to the diagonals of its rows' equations (shifts).
 */
export function implicitNames(side: Side) {
  return { gram: `${side}-gram`, grams: `${side}-grams`, shifts: `${side}-shifts` } as const;
}

/** Names of the stages that measure the implicit loss. */
export const implicitStages = {
  error: 'implicit-error',
  users: 'penalty-users',
  items: 'penalty-items',
  grams: 'fetch-grams',
  ranks: 'rank-validation',
  places: 'fetch-places',
} as const;

/** Data set with the rank of each validation pair among all items for its user. */
export const TEST_PLACES = 'test-places';

/** Number of users whose pairs one task ranks, on a device whose passes are cut into tasks. */
const RANKED_USERS = 2048;

/** The user ranges of the tasks that rank the pairs of a part. `whole`: one task for all. */
export function rankSlices(users: number, whole: boolean): RowRange[] {
  return users === 0 ? [{ from: 0, to: 0 }] : evenRanges(users, whole ? 1 : Math.ceil(users / RANKED_USERS));
}

/** The row ranges of the tasks that compute a Gram matrix. `whole`: one task for all rows. */
export function gramSlices(rank: number, whole: boolean): { readonly from: number; readonly to: number }[] {
  if (whole) return [{ from: 0, to: rank }];
  return Array.from({ length: Math.ceil(rank / GRAM_ROWS) }, (_, k) => ({
    from: k * GRAM_ROWS,
    to: Math.min(rank, (k + 1) * GRAM_ROWS),
  }));
}

/** Stage that computes a side's Gram matrix from the data set `whole`, which has all rows of the side. */
export function gramStage(
  side: Side,
  whole: string,
  rows: number,
  { rank, unobservedWeight }: SizedAlsParams,
  places: readonly Place[],
  wholePasses: boolean,
): Stage {
  return {
    name: `gram-${side}`,
    at: places,
    work: {
      kind: 'tasks',
      tasks: [
        {
          kernel: 'gram',
          uses: { factors: whole, gram: implicitNames(side).gram },
          params: { rank, weight: unobservedWeightOf({ unobservedWeight }) },
        },
      ],
    },
    kernel: 'gram',
    tasks: gramSlices(rank, wholePasses).length,
    bytesRead: factorBytes(rows, rank),
    flops: rows * rank * (rank + 1),
  };
}

/**
 * Stages that compute the Gram matrix of a side in parts: first a Gram matrix of each part; then each device
 * adds these matrices, in part order.
 */
export function gramOfParts(
  side: Side,
  rows: number,
  params: SizedAlsParams,
  { parts, places }: { readonly parts: readonly Place[]; readonly places: readonly Place[] },
  wholePasses: boolean,
): Stage[] {
  const { gram, grams } = implicitNames(side);
  const ofPart = gramStage(side, side, rows, params, parts, wholePasses);
  const add: TaskPlan = {
    kernel: 'add-rows',
    uses: { addend: { set: grams, part: 'column' }, sum: gram },
    params: { from: 0, to: params.rank },
  };
  return [
    {
      ...ofPart,
      name: `grams-${side}`,
      work: {
        kind: 'tasks',
        tasks: [
          {
            kernel: 'gram',
            uses: { factors: side, gram: grams },
            params: { rank: params.rank, weight: unobservedWeightOf(params) },
          },
        ],
      },
    },
    { name: `allocate-gram-${side}`, at: places, work: { kind: 'allocate', data: [gram] } },
    {
      name: `gram-${side}`,
      at: places,
      work: {
        kind: 'blocks',
        tasks: [add],
        order: 'rows',
        seed: 0,
        grid: { rows: places.length, columns: parts.length, of: gram },
      },
      kernel: 'add-rows',
      tasks: parts.length,
    },
  ];
}

/**
 * Task inputs that only implicit data have: the Gram matrix of the fixed side, and the shifts of the solved
 * rows.
 */
export function implicitUses(solved: Side, fixed: Side): DataUses {
  return { gram: implicitNames(fixed).gram, shifts: implicitNames(solved).shifts };
}

/**
 * Stages that measure the loss of implicit data without computing m x n predictions. Σ w₀ (x_uᵀθ_v)² over all
 * pairs is computed from the product of both Gram matrices; then a pass over the ratings corrects the
 * observed pairs. `error`: fields of the stage for that pass. `items`: the data set with all of Θ. `ranked`:
 * sizes for ranking the validation pairs, if a ranking metric may end the run.
 *
 * If solving the users computes the loss, its value already includes their penalty and all pairs. A brief
 * measurement then skips the stages marked so.
 */
export function implicitMeasure(
  params: SizedAlsParams,
  error: Pick<Stage, 'at' | 'work' | 'partitions' | 'brief' | 'reasons'>,
  items: string,
  places: Readonly<Record<Side, readonly Place[]>>,
  tasks: Readonly<Record<Side, number>>,
  nz: number,
  ranked?: { readonly users: number; readonly whole: boolean },
): Stage[] {
  const { rank } = params;
  const at = places.users;
  const q = at.length;
  const brief = error.brief && { brief: error.brief };
  const norm = (side: Side): Stage => ({
    name: implicitStages[side],
    at: places[side],
    work: {
      kind: 'tasks',
      tasks: [
        {
          kernel: 'weighted-norm',
          uses: { shifts: implicitNames(side).shifts, factors: side },
          params: { rank },
        },
      ],
    },
    kernel: 'weighted-norm',
    tasks: tasks[side],
  });
  return [
    {
      name: implicitStages.error,
      kernel: 'implicit-error',
      tasks: tasks.users,
      ...error,
      flops: 2 * nz * rank,
    },
    { ...norm('users'), ...brief },
    norm('items'),
    {
      name: implicitStages.grams,
      at: [...new Set(at)],
      work: {
        kind: 'exchange',
        how: 'move',
        data: [implicitNames('users').gram, implicitNames('items').gram],
        to: 'host',
      },
      ...brief,
    },
    ...(ranked === undefined
      ? []
      : rankStages(params, items, at, rankSlices(Math.ceil(ranked.users / q), ranked.whole).length)),
  ];
}

/**
 * Stages that rank each validation pair among all items that the user has not rated in the training set, and
 * fetch the ranks.
 */
function rankStages(params: SizedAlsParams, items: string, places: readonly Place[], tasks: number): Stage[] {
  const { rank } = params;
  const depth = depthOfMetric(params);
  const uses = {
    rowFactors: 'users',
    columnFactors: items,
    listed: 'test-ratings',
    exclude: 'ratings-by-user',
    places: TEST_PLACES,
  };
  return [
    {
      name: implicitStages.ranks,
      at: places,
      work: {
        kind: 'tasks',
        tasks: [{ kernel: 'rank-listed', uses, params: { rank, ...(depth === undefined ? {} : { depth }) } }],
      },
      kernel: 'rank-listed',
      tasks,
      partitions: { p: 1, q: places.length },
      reasons: [
        `${rankingMetricOf(params)} of the validation set: all items that a user has not rated are ranked`,
      ],
    },
    {
      name: implicitStages.places,
      at: places,
      work: { kind: 'exchange', how: 'move', data: [TEST_PLACES], to: 'host' },
    },
  ];
}

/**
 * The number of top ranks that the metric distinguishes, such as 20 for ndcg@20; undefined if it needs all.
 */
function depthOfMetric(params: SizedAlsParams): number | undefined {
  const { metric, k = 1 } = parseMetric(rankingMetricOf(params) ?? 'auc', 'earlyStopMetric');
  return depthOf([metric], [k]);
}
