import type { RunOptions } from '../api/run-session.ts';
import { fixedItems, type RequestRatings } from '../api/serving/fold-in-request.ts';
import type { RequestedModel } from '../api/serving/served-model.ts';
import { queryOf } from '../api/serving/similar-to.ts';
import { emptyKeys, keyCount, UNKNOWN_KEY } from '../engine/keys/key-column.ts';
import { sharedArray, dataSetName } from '../engine/partition.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { Holdings } from '../engine/run/holdings.ts';
import { mapOrdered } from '../engine/stream/map-ordered.ts';
import type { GpuDevice } from '../gpu/device.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../operators/ratings/ratings.ts';
import { type ChosenItems, chosenPositions } from '../operators/serving/choose-items.ts';
import { type FactorModel, withRows } from '../operators/serving/factor-model.ts';
import type { Found } from '../operators/serving/search.ts';
import { type Similarity, similarityModel } from '../operators/serving/similar.ts';
import {
  type LaterRatings,
  type SolvedUsers,
  solveUsers,
  type UserRule,
} from '../operators/serving/solve-users.ts';
import {
  inFlight,
  itemsByNorm,
  type ListedUsers,
  NO_ITEM,
  type PlacedItems,
  placeItems,
  ranges,
  topLists,
  usersPerTask,
} from '../operators/serving/top-lists.ts';
import { runTask } from '../operators/tasks/run-tasks.ts';
import type { PageSession } from './page-session.ts';

/** Visitors who each rated a known item, and the limits of their lists. */
export interface VisitorSearch {
  readonly visitors: readonly RequestRatings[];
  readonly rule: UserRule;
  readonly chosen: ChosenItems;
  readonly n: number;
}

export interface SimilarItemsSearch {
  readonly positions: Uint32Array;
  readonly similarity: Similarity;
  readonly n: number;
}

/**
 * Searches of one model on the page's GPU, by the operators and kernels with which Node recommends to all
 * users on a GPU. The items stay in the GPU's memory until `close`.
 */
export class GpuSearches {
  readonly #gpu: GpuDevice;
  readonly #served: RequestedModel;
  readonly #session: PageSession;
  readonly #held: Holdings;
  /** Items on the GPU, by the kind of search. */
  readonly #placed = new Map<string, Promise<PlacedItems>>();

  /** Throws UsageError if the session is closed. */
  constructor(gpu: GpuDevice, served: RequestedModel, session: PageSession) {
    [this.#gpu, this.#served, this.#session] = [gpu, served, session];
    this.#held = new Holdings(session.requestContext({}, gpu));
  }

  get adapter() {
    return this.#gpu.adapter;
  }

  /**
   * The best items for each visitor, without the rated ones. Undefined for a visitor whose equations have no
   * finite solution.
   */
  recommend(
    { visitors, rule, chosen, n }: VisitorSearch,
    options: RunOptions,
  ): Promise<readonly (Found | undefined)[]> {
    const { factors } = this.#served;
    return this.#within(options, async (ctx) => {
      const { values, rows } = await this.#solve(visitors, rule, options);
      const items = keyCount(factors.items);
      const positions = chosenPositions(items, chosen);
      const found: (Found | undefined)[] = visitors.map(() => undefined);
      if (positions?.length === 0) {
        for (const row of rows) found[row] = { positions: [], scores: [] };
        return found;
      }
      const rated = rows.map((row) => visitors[row].items);
      const users = {
        model: { rank: factors.rank, userFactors: values },
        n,
        exclude: leftOut(rated, { items, positions }),
      };
      const placed = positions
        ? await this.#place(withRows(factors, 'items', positions), ctx)
        : await this.#keep('recommend', () => factors);
      (await this.#search(placed, users, rows.length, ctx)).forEach((list, at) => {
        const named = positions ? list.positions.map((place) => positions[place]) : list.positions;
        found[rows[at]] = { ...list, positions: named };
      });
      return found;
    });
  }

  /**
   * Solves the visitors' factors on the processor. It needs a fraction of a millisecond for each, and kernels
   * for the GPU would be compiled for seconds.
   */
  #solve(visitors: readonly RequestRatings[], rule: UserRule, options: RunOptions): Promise<SolvedUsers> {
    const fixed = fixedItems(this.#served, rule);
    return Holdings.within(this.#session.requestContext(options), (ctx) =>
      solveUsers(ratingsOfVisitors(visitors), fixed, ctx),
    );
  }

  /** The items most similar to each of some items, without that item. */
  similar({ positions, similarity, n }: SimilarItemsSearch, options: RunOptions): Promise<readonly Found[]> {
    const { factors, rank } = this.#served;
    const { items: ids, itemFactors } = factors;
    return this.#within(options, async (ctx) => {
      const none = new Uint32Array(0);
      const space = {
        ids,
        factors: itemFactors,
        rank: factors.rank,
        features: rank,
        positions: none,
        similarity,
      };
      const placed = await this.#keep(similarity, () => similarityModel(space));
      const userFactors = sharedArray(Float32Array, positions.length * rank);
      positions.forEach((position, row) =>
        userFactors.set(queryOf(itemFactors, position * factors.rank, rank, similarity), row * rank),
      );
      const themselves = Array.from(positions, (position) => Uint32Array.of(position));
      const exclude = leftOut(themselves, { items: keyCount(ids), positions: undefined });
      return this.#search(placed, { model: { rank, userFactors }, n, exclude }, positions.length, ctx);
    });
  }

  #within<Result>(options: RunOptions, work: (ctx: ExecutionContext) => Promise<Result>): Promise<Result> {
    return Holdings.within(this.#session.requestContext(options, this.#gpu), work);
  }

  /** The items of a kind of search, placed by the first of its searches. */
  #keep(kind: string, model: () => FactorModel): Promise<PlacedItems> {
    let placed = this.#placed.get(kind);
    if (placed === undefined) {
      placed = this.#place(model(), this.#held.ctx);
      this.#placed.set(kind, placed);
      placed.catch(() => this.#placed.delete(kind));
    }
    return placed;
  }

  async #place(model: FactorModel, ctx: ExecutionContext): Promise<PlacedItems> {
    const { place } = this.#gpu.info;
    // The search needs no ids, which sorting would copy.
    const none = emptyKeys('int32', 0, 0);
    const items = emptyKeys('int32', keyCount(model.items), 0);
    const sorted = itemsByNorm({ ...model, users: none, items });
    const placed = await placeItems(sorted.model, sorted, place, ctx);
    const inputs = { data: placed.columnFactors };
    await runTask(ctx, 'upload', place, { kernel: 'upload', inputs, outputs: {}, params: {} });
    return placed;
  }

  async #search(
    placed: PlacedItems,
    users: ListedUsers,
    count: number,
    ctx: ExecutionContext,
  ): Promise<readonly Found[]> {
    const { info } = this.#gpu;
    const { n } = users;
    const top = await topLists(placed, users, info, ctx);
    const found: Found[] = [];
    for await (const lists of mapOrdered(ranges(count, usersPerTask(info, n)), inFlight(info), top))
      for (let at = 0; at < lists.items.length; at += n)
        found.push(listOf(lists.items.subarray(at, at + n), lists.scores.subarray(at, at + n)));
    return found;
  }

  async close(): Promise<void> {
    await this.#held.close();
    await this.#gpu.close();
  }
}

/** A list without the places that no item fills. */
function listOf(items: Uint32Array, scores: Float32Array): Found {
  const end = items.indexOf(NO_ITEM);
  const length = end < 0 ? items.length : end;
  return { positions: Array.from(items.subarray(0, length)), scores: Array.from(scores.subarray(0, length)) };
}

/** The ratings of several visitors, as the solver takes them: a row for each visitor. */
function ratingsOfVisitors(visitors: readonly RequestRatings[]): LaterRatings {
  const items = Uint32Array.from(new Set(visitors.flatMap((visitor) => Array.from(visitor.items)))).sort();
  const columnOf = new Map(Array.from(items, (item, column) => [item, column]));
  const block = blockOfRows(
    visitors.map((visitor) => Array.from(visitor.items, (item) => columnOf.get(item)!)),
  );
  block.values.set(visitors.flatMap(({ ratings }) => ratings));
  const priors = visitors.flatMap(({ prior }) => (prior ? [...prior.row] : []));
  return { block, items, ...(priors.length > 0 && { priors: Float32Array.from(priors) }) };
}

/**
 * The items that each of several rows must not have in its list. `positions`: the items of the search, if
 * not all items are searched; the block has places in this list.
 */
function leftOut(
  rows: readonly Uint32Array[],
  { items, positions }: { readonly items: number; readonly positions: Uint32Array | undefined },
): RatingBlock {
  if (positions === undefined) return blockOfRows(rows);
  const placeOf = new Uint32Array(items).fill(UNKNOWN_KEY);
  positions.forEach((item, place) => (placeOf[item] = place));
  return blockOfRows(
    rows.map((row) => Array.from(row, (item) => placeOf[item]).filter((place) => place !== UNKNOWN_KEY)),
  );
}

/** A block with these columns in each row, ascending, and the value 0. */
function blockOfRows(rows: readonly ArrayLike<number>[]): RatingBlock {
  const partition = emptyBlock(Int32Array.from(rows, ({ length }) => length));
  const block = blockOf({ name: dataSetName('visitors'), partition: 0, version: 0 }, partition);
  rows.forEach((row, at) => block.indices.set(row, block.offsets[at]));
  return block;
}
