import { startPhase } from '../../../engine/events.ts';
import { formatCount } from '../../../engine/format.ts';
import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import { dataSetName, partitionRef } from '../../../engine/partition.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { giveTo } from '../../../engine/run/run-steps.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { type RatingBlock, rowsOfBlock, withoutValues } from '../../ratings/ratings.ts';
import { type FactorModel, type PlacedFactors, placeFactors } from '../../serving/factor-model.ts';
import { announceSearch } from '../../serving/top-lists.ts';
import { runTask } from '../../tasks/run-tasks.ts';
import type { TaskOf } from '../../tasks/tasks.ts';
import type { ModelFactors } from '../../training/model-rows.ts';
import { userValues } from './measure-rankings.ts';
import { distinctItems, drawUsers, onlyRows, rankedTest, usersOf } from './ranked-pairs.ts';
import { depthOf, measuresOf, type MetricValues, parseMetric } from './ranking-metrics.ts';

/** A validation set and the training ratings, as blocks over the same users and items. */
export interface ValidationPairs {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly test: RatingBlock;
  readonly train: RatingBlock;
}

/** At most `rankUsers` users are ranked; if there are more, they are drawn by the seed. */
export interface RankedUsers {
  readonly rankUsers: number;
  readonly seed: number;
}

/** A ranking metric on a validation set. */
export interface ValidationRanking {
  /** Number of items that are not ranked for each user, if the metric needs it. */
  readonly excluded: Uint32Array | undefined;
  /** Pairs to rank, by user. */
  readonly positives: RatingBlock;
  /** Number of top ranks that the metric distinguishes; undefined: all. */
  readonly depth: number | undefined;
  /**
   * Computes the metric from the ranks and ties of the test items (positives: see Rankings), and
   * returns it under its name. NaN if there are no test items.
   */
  values(places: Uint32Array): MetricValues;
}

/**
 * Prepares a ranking metric on a validation set, by its name such as ndcg@20. Each user's validation items
 * are ranked among all items that the user has not rated in the training set. Pairs that are in both sets are
 * not ranked, and are reported once. If there are more than `rankUsers` users, `rankUsers` of them are drawn,
 * the same for all iterations.
 */
export function validationRanking(
  name: string,
  { users, items, test, train }: ValidationPairs,
  { rankUsers, seed }: RankedUsers,
  { events }: Pick<ExecutionContext, 'events'>,
): ValidationRanking {
  const { metric, k = 1 } = parseMetric(name, 'earlyStopMetric');
  const { positives: whole, leaked } = rankedTest(test, train);
  if (leaked > 0)
    events({
      type: 'warning',
      text: `${formatCount(leaked)} validation pairs are among the training ratings too, and are not ranked`,
    });
  const eligible = usersOf(whole);
  const positives =
    eligible.length > rankUsers ? onlyRows(whole, drawUsers(users, eligible, rankUsers, seed)) : whole;
  const excluded = metric === 'auc' ? distinctItems(train) : undefined;
  return {
    excluded,
    positives,
    depth: depthOf([metric], [k]),
    values: (places) => ({
      [name]: userValues({ positives, places, items: keyCount(items), excluded }, measuresOf([metric], [k]))
        .means[0],
    }),
  };
}

/**
 * Measures a ranking metric from factors in host memory; used if the plan of the training has no step that
 * ranks.
 */
export function validationMetric(
  name: string,
  pairs: ValidationPairs,
  ranked: RankedUsers,
  ctx: ExecutionContext,
): (factors: ModelFactors, ctx: ExecutionContext) => Promise<MetricValues> {
  const { users, items, train } = pairs;
  const ranking = validationRanking(name, pairs, ranked, ctx);
  let ranks: { readonly ctx: ExecutionContext; readonly of: PositiveRanks } | undefined;
  return async ({ userFactors, itemFactors }, held) => {
    // If a device was lost, the run continues with a new context, and the ranking must be prepared again on
    // its devices.
    if (ranks?.ctx !== held)
      ranks = { ctx: held, of: new PositiveRanks(ranking.positives, train, { ...held, events: () => {} }) };
    const model = { rank: itemFactors.length / keyCount(items), users, items, userFactors, itemFactors };
    return ranking.values(await ranks.of.places(model, ranking.depth));
  };
}

const STAGE = 'rank-listed';

/**
 * Number of users of one task. A device that divides the rows of a task itself is busy only with many of
 * them.
 */
function usersPerTask({ wholePasses }: DeviceInfo): number {
  return wholePasses ? 65_536 : 2048;
}

/**
 * Ranks a test set's positives by models, one model after the other. The blocks stay on the device while the
 * holdings of `ctx` are open, so that the next model only uploads its factors. `positives` and `exclude` are
 * blocks over the users and items of the models; no pair may be in both.
 */
export class PositiveRanks {
  readonly #positives: RatingBlock;
  readonly #exclude: RatingBlock | undefined;
  readonly #ctx: ExecutionContext;
  readonly #name = dataSetName('ranked');
  /** First users of the ranges whose blocks are already on the device. */
  readonly #placed = new Set<number>();

  constructor(positives: RatingBlock, exclude: RatingBlock | undefined, ctx: ExecutionContext) {
    this.#positives = positives;
    this.#exclude = exclude;
    this.#ctx = ctx;
  }

  /**
   * Rank and ties of each test item (positive) among all items that are not excluded for its user: see
   * `places` of Rankings. A caller that distinguishes only the first `depth` ranks saves time. The m x n
   * scores are never stored.
   */
  async places(model: FactorModel, depth?: number): Promise<Uint32Array> {
    const { ratings, offsets, rows } = this.#positives;
    const places = new Uint32Array(2 * ratings);
    const { info } = computeDevice(this.#ctx.executor);
    if (this.#placed.size === 0) announceSearch(STAGE, this.#exclude !== undefined, info, this.#ctx);
    const phase = startPhase(this.#ctx.events, 'rank', 'users', rows);
    await Holdings.within(this.#ctx, async (held) => {
      const factors = await placeFactors(
        model,
        info.place,
        held,
        info.ownMemory ? ['items'] : ['users', 'items'],
      );
      const rank = (range: RowRange) => this.#rank(range, model, factors, depth, info);
      for await (const { range, values } of mapOrdered(
        ranges(this.#positives, usersPerTask(info)),
        info.inOrder ? 3 : 2 * info.parallelism,
        rank,
      )) {
        places.set(values, 2 * offsets[range.from]);
        phase.progress(range.to);
      }
    });
    phase.end(rows);
    return places;
  }

  /**
   * Ranks the test items of a range of users with one task. A device with its own memory is sent one range of
   * users and pairs at a time; threads of the host read all of them in shared memory.
   */
  async #rank(
    range: RowRange,
    { rank, userFactors }: FactorModel,
    factors: PlacedFactors,
    depth: number | undefined,
    { place, ownMemory }: DeviceInfo,
  ) {
    const { from, to } = range;
    const [first, last] = ownMemory ? [from, to] : [0, this.#positives.rows];
    const ref = (part: string) =>
      partitionRef(`${this.#name}/${part}`, part === 'listed' || part === 'exclude' ? first : from);
    const blocks = { listed: this.#positives, ...(this.#exclude ? { exclude: this.#exclude } : {}) };
    if (!this.#placed.has(first)) {
      this.#placed.add(first);
      await giveTo(
        this.#ctx,
        place,
        Object.entries(blocks).map(([part, block]) => [
          ref(part),
          withoutValues(ownMemory ? rowsOfBlock(block, first, last, ref(part)) : block),
        ]),
      );
    }
    const [places, users] = [ref('places'), ref('users')];
    const rows = () => userFactors.subarray(from * rank, to * rank);
    const task: TaskOf<'rank-listed'> = {
      kernel: 'rank-listed',
      inputs: {
        rowFactors: ownMemory ? users : factors.users,
        columnFactors: factors.items,
        listed: ref('listed'),
        ...(this.#exclude ? { exclude: ref('exclude') } : {}),
      },
      outputs: { places },
      params: { from: from - first, to: to - first, rank, ...(depth === undefined ? {} : { depth }) },
    };
    const { handed } = await runTask(this.#ctx, STAGE, place, task, {
      given: ownMemory ? [[users, { layout: 'factors', rows: to - from, columns: { values: rows() } }]] : [],
      handsOut: [places],
    });
    return { range, values: handed[0].columns.values as Uint32Array };
  }
}

/** Ranges of users, without ranges that have no positive. */
async function* ranges({ rows, offsets }: RatingBlock, step: number): AsyncGenerator<RowRange> {
  for (let from = 0; from < rows; from += step) {
    const to = Math.min(rows, from + step);
    if (offsets[to] > offsets[from]) yield { from, to };
  }
}
