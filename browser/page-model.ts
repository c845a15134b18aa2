import { explainItem, type Explanation, type ExplainOptions } from '../api/serving/explain.ts';
import { type RatedItem, recommendFromRatings } from '../api/serving/fold-in-request.ts';
import { missingIndex, type UsedIndexes } from '../api/serving/index-use.ts';
import { checkNames } from '../api/serving/item-name.ts';
import { checkOptions, runOptionNames } from '../api/check-options.ts';
import type { UserRecommendations } from '../api/serving/request.ts';
import { checkCount, checkRequest, type RequestOptions } from '../api/serving/request-options.ts';
import { Searches } from '../api/serving/searches.ts';
import { idsOf, type RequestedModel, sideSpace } from '../api/serving/served-model.ts';
import { findSimilar, type SimilarRows, type SimilarTo } from '../api/serving/similar-to.ts';
import { UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import { findId, type Id } from '../engine/keys/find-id.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { shown } from '../engine/shown.ts';
import type { PageSession } from './page-session.ts';

/** Options of `PageModel.recommend`. */
export type PageRequestOptions = Omit<RequestOptions, 'exclude' | 'filter' | 'index'>;

/** A page searches exactly: it does not load the indexes of large catalogues. */
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

  /** @internal */
  constructor(parts: Omit<RequestedModel, 'session' | 'searches' | 'indexes'>, session: PageSession) {
    this.rank = parts.rank;
    this.metadata = parts.metadata;
    this.itemCounts = parts.itemCounts;
    this.#session = session;
    this.#served = { ...parts, session, searches: new Searches(session), indexes: noIndexes };
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
    checkRequest(options, this.#served);
    checkCount(n);
    return recommendFromRatings(this.#served, visitor.ratings, n, options);
  }

  /** The n items most similar to one item. Throws UsageError for an unknown id. */
  async similar(id: Id, n: number, options: Omit<SimilarTo, 'side' | 'index'> = {}): Promise<SimilarRows> {
    checkOptions('similar', options, ['similarity', 'names', ...runOptionNames], "{ similarity: 'dot' }");
    return findSimilar(this.#served, id, n, options);
  }

  /** Splits a score exactly into the contributions of the visitor's ratings, as `Model.explain` does. */
  async explain(ratings: readonly RatedItem[], item: Id, options: ExplainOptions = {}): Promise<Explanation> {
    checkOptions('explain', options, ['regParam', 'names', ...runOptionNames], '{ regParam: 0.1 }');
    checkNames('explain', options.names);
    return explainItem(this.#served, ratings, item, options);
  }

  /** Builds the index of the items. Without this call the first recommendation builds it. */
  async prepare(): Promise<void> {
    const { name, space } = sideSpace(this.#served, 'item');
    await this.#served.searches.prepare(name, space);
  }

  /** Frees the memory; later work throws UsageError. */
  async close(): Promise<void> {
    await this.#served.searches.close();
    await this.#session.close();
  }
}
