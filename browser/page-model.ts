import { explainItem, type Explanation, type ExplainOptions } from '../api/serving/explain.ts';
import { type RatedItem, recommendFromRatings } from '../api/serving/fold-in-request.ts';
import { checkIndexUse, type IndexUse, missingIndex, type UsedIndexes } from '../api/serving/index-use.ts';
import { checkNames, nameOf } from '../api/serving/item-name.ts';
import { checkOptions, runOptionNames } from '../api/check-options.ts';
import type { UserRecommendations } from '../api/serving/request.ts';
import { checkCount, checkRequest, type RequestOptions } from '../api/serving/request-options.ts';
import { Searches } from '../api/serving/searches.ts';
import { idsOf, type RequestedModel, sideSpace } from '../api/serving/served-model.ts';
import { findSimilar, type SimilarRows, type SimilarTo } from '../api/serving/similar-to.ts';
import { indexKindOf } from '../api/serving/search-similar.ts';
import type { RunOptions } from '../api/run-session.ts';
import type { IndexKind } from '../connectors/model/index-layout.ts';
import { checkSimilarity } from '../operators/serving/similarity.ts';
import { UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import { findId, type Id } from '../engine/keys/find-id.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { shown } from '../engine/shown.ts';
import type { ItemNames } from '../operators/serving/item-names.ts';
import type { PageIndexes } from './page-indexes.ts';
import type { PageItems } from './page-items.ts';
import type { PageSession } from './page-session.ts';
import { RemoteNames } from './names/remote-names.ts';

/** Names of items in memory, or on a web server. */
export interface PageNames {
  readonly names?: ItemNames | RemoteNames;
}

/** Options of `PageModel.recommend`. */
export type PageRequestOptions = Omit<RequestOptions, 'exclude' | 'filter' | 'names'> & PageNames;

/** Options of `PageModel.similar`. */
export type PageSimilarOptions = Omit<SimilarTo, 'side' | 'names'> & PageNames;

/** Options of `PageModel.explain`. */
export type PageExplainOptions = Omit<ExplainOptions, 'names'> & PageNames;

/** The options without names on a server, which are read for the found items alone, and these names. */
function splitNames<Options extends PageNames>({
  names,
  ...options
}: Options): readonly [Omit<Options, 'names'> & { readonly names?: ItemNames }, RemoteNames | undefined] {
  return names instanceof RemoteNames
    ? [options, names]
    : [{ ...options, ...(names !== undefined && { names }) }, undefined];
}

/** The parts of a model that stay on a server. */
interface RemoteParts {
  readonly items: PageItems;
  readonly indexes: PageIndexes;
}

/** A model that was trained in the page has no index. */
const noIndexes: UsedIndexes = {
  stored: (kind) => Promise.reject(missingIndex(kind)),
  probes: (kind, use = 'auto') => {
    if (use !== 'auto' && use !== false) throw missingIndex(kind);
    return undefined;
  },
};

/**
 * The items of a model in a page: recommends to visitors by their own ratings, which stay in the page. The
 * methods have the names, options and results of the methods of `Model` in Node.
 */
export class PageModel {
  /** f: factors of an item, without biases. */
  readonly rank: number;
  readonly metadata: JsonObject;
  /** Number of ratings of each item in the training, in the order of `itemIds`, if the model has them. */
  readonly itemCounts: Uint32Array | undefined;
  readonly #served: RequestedModel;
  readonly #session: PageSession;
  readonly #remote: RemoteParts | undefined;

  /** @internal */
  constructor(
    parts: Omit<RequestedModel, 'session' | 'searches' | 'indexes'>,
    session: PageSession,
    remote?: RemoteParts,
  ) {
    this.#remote = remote;
    this.rank = parts.rank;
    this.metadata = parts.metadata;
    this.itemCounts = parts.itemCounts;
    this.#session = session;
    this.#served = {
      ...parts,
      session,
      searches: new Searches(session),
      indexes: remote?.indexes ?? noIndexes,
    };
    remote?.indexes.serve(this.#served);
  }

  get itemCount(): number {
    return keyCount(this.#served.factors.items);
  }

  /** The ids of all items, ascending: numbers, bigints beyond the safe integers, or texts. */
  itemIds(): Id[] {
    const ids = idsOf(this.#served, 'item');
    return Array.from({ length: this.itemCount }, (_, position) => ids.at(position));
  }

  hasItem(id: Id): boolean {
    return findId(this.#served.factors.items, id) >= 0;
  }

  /**
   * The n best items for a visitor who gave these ratings, without the rated items. Factors are solved from
   * the ratings as `Model.recommend` of Node does; nothing leaves the page.
   */
  async recommend(
    visitor: { readonly ratings: readonly RatedItem[] },
    n: number,
    options: PageRequestOptions = {},
  ): Promise<UserRecommendations> {
    if (typeof visitor !== 'object' || visitor === null)
      throw new UsageError(`recommend takes the visitor's ratings, got ${shown(visitor)}`, {
        advice: 'For example { ratings: [{ item: 5, rating: 4 }] }',
      });
    const [given, remote] = splitNames(options);
    checkIndexUse('recommend', given.index);
    await this.#prepareSearch('recommend', given.index, given);
    checkRequest(given, this.#served);
    checkCount(n);
    const found = await recommendFromRatings(this.#served, visitor.ratings, n, given);
    return { ...found, items: await this.#named(remote, found.items, ({ item }) => item, given.signal) };
  }

  /** The n items most similar to one item. Throws UsageError for an unknown id. */
  async similar(id: Id, n: number, options: PageSimilarOptions = {}): Promise<SimilarRows> {
    const known = ['similarity', 'names', 'index', ...runOptionNames] as const;
    checkOptions('similar', options, known, "{ similarity: 'dot' }");
    const [given, remote] = splitNames(options);
    const { similarity = 'cosine', index } = given;
    checkIndexUse('similar', index);
    await this.#prepareSearch(indexKindOf(checkSimilarity(similarity)), index, given);
    const found = await findSimilar(this.#served, id, n, given);
    return { ...found, similar: await this.#named(remote, found.similar, (row) => row.id, given.signal) };
  }

  /** Splits a score exactly into the contributions of the visitor's ratings, as `Model.explain` does. */
  async explain(
    ratings: readonly RatedItem[],
    item: Id,
    options: PageExplainOptions = {},
  ): Promise<Explanation> {
    checkOptions('explain', options, ['regParam', 'names', ...runOptionNames], '{ regParam: 0.1 }');
    const [given, remote] = splitNames(options);
    checkNames('explain', given.names);
    const found = await explainItem(this.#served, ratings, item, given);
    const [asked, ...contributions] = await this.#named(
      remote,
      [found, ...found.contributions],
      (row) => row.item,
      given.signal,
    );
    return { ...(asked as Explanation), contributions: contributions as typeof found.contributions };
  }

  /** The rows with the names that a file on the server has for them. */
  async #named<Row extends object>(
    names: RemoteNames | undefined,
    rows: readonly Row[],
    idOf: (row: Row) => Id,
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    if (names === undefined) return rows;
    const { items } = this.#served.factors;
    const found = await names.names(rows.map(idOf), (id) => findId(items, id), signal);
    return rows.map((row) => ({ ...row, ...nameOf(found, idOf(row)) }));
  }

  /** Reads what a search with this option needs. */
  async #prepareSearch(kind: IndexKind, index: IndexUse | undefined, run: RunOptions): Promise<void> {
    const { signal } = this.#session.requestContext(run);
    await this.#remote?.indexes.prepare(kind, index, signal);
  }

  /**
   * Builds the index of the items, for exact searches. Without this call the first recommendation builds it. A
   * model that was opened with its list index needs no such call.
   */
  async prepare(): Promise<void> {
    if (this.#remote && !this.#remote.items.loaded) return;
    const { name, space } = sideSpace(this.#served, 'item');
    await this.#served.searches.prepare(name, space);
  }

  /** Frees the memory; later work throws UsageError. */
  async close(): Promise<void> {
    await this.#served.searches.close();
    await this.#session.close();
  }
}
