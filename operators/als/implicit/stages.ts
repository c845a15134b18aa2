import type { Place } from '../../../engine/plan/place.ts';
import type { DataUses, RowRange, Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import { factorBytes } from '../../planner/sizes.ts';
import { evenRanges } from '../../ratings/row-ranges.ts';
import { rankingMetricOf } from '../../params/common.ts';
import { depthOf, parseMetric } from '../../evaluation/ranking/ranking-metrics.ts';
import type { SizedAlsParams } from './sized-params.ts';
import type { Side } from '../plan/grid.ts';
import { unobservedWeightOf } from './weights.ts';

/** A task on a device that works in slices computes this number of rows of G. */
const GRAM_ROWS = 16;

/** Names of a side's data sets in implicit ALS: G of its factors, and the shifts of its rows. */
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

/** Data set with the rank of each validation pair in its user's ranking. */
export const TEST_PLACES = 'test-places';

/** Users ranked by one task, on a device with slices. */
const RANKED_USERS = 2048;

/** Slices of a part's users, for ranking. */
export function rankSlices(users: number, whole: boolean): RowRange[] {
  return users === 0 ? [{ from: 0, to: 0 }] : evenRanges(users, whole ? 1 : Math.ceil(users / RANKED_USERS));
}

/** Slices of the rows of G. */
export function gramSlices(rank: number, whole: boolean): { readonly from: number; readonly to: number }[] {
  if (whole) return [{ from: 0, to: rank }];
  return Array.from({ length: Math.ceil(rank / GRAM_ROWS) }, (_, k) => ({
    from: k * GRAM_ROWS,
    to: Math.min(rank, (k + 1) * GRAM_ROWS),
  }));
}

/** Stage that computes G of a side from the data set `whole`, which has all its rows. */
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
 * Stages that compute G of a side that is fixed in parts: first G of each part; then, at each place, the sum
 * of these matrices in part order.
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

/** Inputs and parameters that a half-iteration's task has for implicit data alone. */
export function implicitUses(solved: Side, fixed: Side): DataUses {
  return { gram: implicitNames(fixed).gram, shifts: implicitNames(solved).shifts };
}

/**
 * The stages that measure the loss without computing m x n predictions. Σ w₀ (x_uᵀθ_v)² over all pairs is
 * the trace of the product of both Gram matrices; then the observed pairs are corrected one by one. `items`:
 * the data set with all of Θ. `ranked`: a ranking metric may end the run.
 *
 * If the solve of the users computes the loss, that already includes their penalty and all pairs. A brief
 * measure then only computes the rest.
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

/** Stages that rank the validation pairs among all items that are not in the training set. */
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

/** Number of top ranks that the early-stop metric distinguishes. */
function depthOfMetric(params: SizedAlsParams): number | undefined {
  const { metric, k = 1 } = parseMetric(rankingMetricOf(params) ?? 'auc', 'earlyStopMetric');
  return depthOf([metric], [k]);
}
