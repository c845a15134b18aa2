import type { Id } from '../engine/keys/find-id.ts';
import type { Exclusions } from '../operators/serving/exclusions.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import { type Dataset, requireDataset } from './dataset.ts';
import type { RunOptions } from './run-session.ts';
import { buildIndex, type BuildIndexOptions, type BuiltIndex, saveIndexes } from './serving/build-index.ts';
import { explainItem, type ExplainOptions, type Explanation } from './serving/explain.ts';
import { type RatedItem, recommendFromRatings } from './serving/fold-in-request.ts';
import { checkIndexUse, type IndexOption } from './serving/index-use.ts';
import { type ItemFilters, type ItemFiltersOptions, readItemFilters } from './serving/item-filters.ts';
import { checkNames } from './serving/item-name.ts';
import { ratingsOfUser, type RatingsOfUser } from './serving/ratings-of-user.ts';
import { readExclusions } from './serving/recommend-datasets.ts';
import {
  checkCount,
  checkRequest,
  recommendToUser,
  type RequestOptions,
  type UserRecommendations,
} from './serving/request.ts';
import { preparedIndex, scoreOfPair, sideSpace } from './serving/served-model.ts';
import { findSimilar, type SimilarItems, type SimilarTo, type SimilarUsers } from './serving/similar-to.ts';
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
   * The n items most similar to one item, as plain objects for a request to a server; searched in a thread.
   * An unknown item has `known: false` and no similar ones.
   */
  similar(item: Id, n: number, options?: SimilarTo & { readonly side?: 'item' }): Promise<SimilarItems>;
  /** The same for a user: `{ side: 'user' }`. */
  similar(user: Id, n: number, options: SimilarTo & { readonly side: 'user' }): Promise<SimilarUsers>;
  similar(id: Id, n: number, options: SimilarTo): Promise<SimilarItems | SimilarUsers>;
  async similar(id: Id, n: number, options: SimilarTo = {}): Promise<SimilarItems | SimilarUsers> {
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
    return explainItem(this.served, ratings, item, options, (rated, run) =>
      ratingsOfUser(this.served, rated, run),
    );
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
   * Prepares requests for single users in a thread. If `index` says so (see RequestOptions), this reads the
   * model's index of lists; else it builds an exact index, which takes about 1.3 times the memory of the item
   * factors. Without this call the first request does it. Throws CapacityError, and DataError for an index
   * that is damaged or of another model.
   */
  async prepare(options: IndexOption = {}): Promise<void> {
    checkOptions('prepare', options, ['index'], '{ index: true }');
    checkIndexUse('prepare', options.index);
    const { indexes } = this.served;
    const lists = indexes.probes('recommend', options.index) !== undefined;
    for (const kind of lists ? indexes.kinds : []) await preparedIndex(this.served, kind);
    if (lists) return;
    const { name, space } = sideSpace(this.served, 'item');
    await this.served.searches.prepare(name, space);
  }

  /**
   * Builds an index of the items for large catalogues: k-means distributes them over lists, and a search then
   * compares only the items of the nearest lists, in 8 bits, and most of the best again exactly. The number
   * of lists to search is chosen so that a sample of users finds `recall` of their 20 best items. From
   * 1,000,000 items on, requests use it unless their option `index` is false. The same factors and seed give
   * the same bits for any number of threads. Runs in the threads of the CPU.
   */
  async buildIndex(options: BuildIndexOptions = {}): Promise<BuiltIndex[]> {
    return buildIndex(this.served, options);
  }

  /** The searches for which this model has an index: for users, for similar items, or none. */
  get indexed(): readonly ('recommend' | 'similar')[] {
    return this.served.indexes.kinds;
  }

  /** Writes the indexes of this model into a folder where it was saved; loading finds them there. */
  async saveIndex(directory: string): Promise<void> {
    await saveIndexes(this.served, directory);
  }

  /**
   * Frees the memory of `prepare` and of requests, once running requests have ended. Later work throws
   * UsageError, except saving and reading the factors.
   */
  async close(): Promise<void> {
    await this.served.searches.close();
  }
}
