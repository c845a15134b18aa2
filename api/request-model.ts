import type { Id } from '../engine/keys/find-id.ts';
import type { Exclusions } from '../operators/serving/exclusions.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import type { Dataset } from './dataset.ts';
import { requireDataset } from './require-dataset.ts';
import type { RunOptions } from './run-session.ts';
import { type Explanation, explainItem, type ExplainOptions } from './serving/explain.ts';
import { type RatedItem, recommendFromRatings } from './serving/fold-in-request.ts';
import type { RatingsOfUser } from './serving/ratings-of-user.ts';
import { readExclusions } from './serving/recommend-datasets.ts';
import { checkCount, checkRequest, type RequestOptions } from './serving/recommend-options.ts';
import type { ItemFilters } from './serving/item-filters.ts';
import { type ItemFiltersOptions, readItemFilters } from './serving/read-item-filters.ts';
import { recommendToUser, type UserRecommendations } from './serving/request.ts';
import { scoreOfPair, sideSpace } from './serving/served-model.ts';
import { findSimilar, type SimilarRows, type SimilarTo } from './serving/similar-to.ts';
import { checkNames } from './serving/with-names.ts';
import { StoredModel } from './stored-model.ts';

/** A model that answers requests of a server: for one user or item, with plain objects. */
export class RequestModel extends StoredModel {
  /**
   * The n best items of one user as plain objects, for a request to a server; searched in a thread. Instead
   * of an id, ratings can be given, of a user who need not be in the model: factors are solved from them
   * first, and the rated items are left out.
   */
  async recommend(
    user: Id | { readonly ratings: readonly RatedItem[] },
    n: number,
    options: RequestOptions = {},
  ): Promise<UserRecommendations> {
    checkRequest(options, this.served);
    checkCount(n);
    return typeof user === 'object' && user !== null
      ? recommendFromRatings(this.served, user.ratings, n, options)
      : recommendToUser(this.served, user ?? undefined, n, options);
  }

  /**
   * The n items most similar to one item, or users most similar to one user, as plain objects for a request
   * to a server; searched in a thread. Throws UsageError for an unknown id.
   */
  async similar(id: Id, n: number, options: SimilarTo = {}): Promise<SimilarRows> {
    return findSimilar(this.served, id, n, options);
  }

  /**
   * Reads attributes of items, such as genres and prices, from a file of any supported format. The option
   * `filter` of `recommend` takes conditions on them: `filters.where("genre = 'Drama' and price < 10")`.
   * Throws DataError for a file without an id of the model.
   */
  async readItemFilters(path: string, options: ItemFiltersOptions = {}): Promise<ItemFilters> {
    this.served.searches.requireOpen();
    return readItemFilters(this.served, path, options);
  }

  /** The prediction for one user and item, x_uᵀθ_v; undefined if the model does not know one of them. */
  score(user: Id, item: Id): number | undefined {
    return scoreOfPair(this.served, user, item);
  }

  /**
   * Splits a score exactly into the contributions of each of a user's ratings (Hu, Koren and Volinsky 2008,
   * section 5). A model does not store ratings: give the user's ratings, or a data set with the model's
   * columns that contains them. Throws UsageError for a user who has no ratings there.
   */
  async explain(
    ratings: readonly RatedItem[] | RatingsOfUser,
    item: Id,
    options: ExplainOptions = {},
  ): Promise<Explanation> {
    checkOptions('explain', options, ['regParam', 'names', ...runOptionNames], '{ regParam: 0.1 }');
    checkNames('explain', options.names);
    return explainItem(this.served, ratings, item, options);
  }

  /**
   * Reads pairs that must not be recommended into memory, for any number of calls. Pairs with unknown ids are
   * counted.
   */
  async exclusions(pairs: Dataset, options: RunOptions = {}): Promise<Exclusions> {
    requireDataset(pairs, 'exclusions');
    checkOptions('exclusions', options, runOptionNames);
    return readExclusions(this.served, pairs, this.served.session.context(options));
  }

  /**
   * Builds the index for requests for single users in a thread; it takes about 1.3 times the memory of the
   * item factors. Without this call the first request builds it. Throws CapacityError.
   */
  async prepare(): Promise<void> {
    const { name, space } = sideSpace(this.served, 'item');
    await this.served.searches.prepare(name, space);
  }

  /**
   * Frees the memory of `prepare` and of requests, once running requests have ended. Later work throws
   * UsageError, except saving and reading the factors.
   */
  async close(): Promise<void> {
    await this.served.searches.close();
  }
}
