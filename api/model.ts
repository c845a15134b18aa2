import { throwIfAborted, UsageError } from '../engine/errors.ts';
import type { Id } from '../engine/keys/find-id.ts';
import { followed } from '../engine/run/context.ts';
import { andThen, runInto } from '../engine/stream/logical-plan.ts';
import { Evaluate, type Evaluation } from '../operators/evaluation/evaluate.ts';
import type { Exclusions } from '../operators/serving/exclusions.ts';
import type { RankingEvaluation } from '../operators/evaluation/ranking/evaluate-ranking.ts';
import { type ColdStart, Predict } from '../operators/serving/predict.ts';
import type { BadRowPolicy } from '../operators/ratings/rows/bad-rows.ts';
import { SelectRatings } from '../operators/ratings/rows/select-ratings.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import type { Dataset } from './dataset.ts';
import { ratedPairsOf } from './found-columns.ts';
import { requireDataset } from './require-dataset.ts';
import { loadedParts } from './loaded-parts.ts';
import { readExclusions, recommendAll, recommendSome, recommendUsers } from './serving/recommend-datasets.ts';
import {
  checkCount,
  checkIds,
  checkItems,
  checkRecommend,
  checkRequest,
  checkUsers,
  type ItemsOptions,
  type RecommendOptions,
  type RequestOptions,
  type UsersOptions,
} from './serving/recommend-options.ts';
import { recommendToUser, type UserRecommendations } from './serving/request.ts';
import { type FoldedCounts, type FoldInOptions, foldInUsers } from './serving/fold-in.ts';
import { type Explanation, explainItem, type ExplainOptions } from './serving/explain.ts';
import { type RatedItem, recommendFromRatings } from './serving/fold-in-request.ts';
import type { RatingsOfUser } from './serving/ratings-of-user.ts';
import { ruleOf, sideSpace } from './serving/served-model.ts';
import { type SimilarOptions, similarRows } from './serving/similar-rows.ts';
import { checkNames, withNames } from './serving/with-names.ts';
import { StoredModel } from './stored-model.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import type { ExplainedPlan } from './training/plans/explained-plan.ts';
import type { UpdateOptions } from './training/update-options.ts';
import type { RankingOptions } from './validation/ranking-options.ts';

/** Users who were folded in, as a model of them alone with the items as they are. */
export interface FoldedUsers extends FoldedCounts {
  readonly model: Model;
}

/** User and item factors with the ids that they belong to: predicts, recommends, is measured. Immutable. */
export class Model extends StoredModel {
  /**
   * Loads a model folder written by `save` or by Spark ML, in a thread. Throws DataError naming the file that
   * is missing or wrong.
   */
  static async load(session: RunSession, directory: string): Promise<Model> {
    if (
      typeof (session as Partial<RunSession> | undefined)?.context !== 'function' ||
      typeof directory !== 'string'
    )
      throw new UsageError('Model.load takes a session and a folder', {
        advice: 'Model.load(session, directory)',
      });
    const ctx = session.context();
    using _ = session.beginPhase('load model');
    const parts = await followed(ctx, () => loadedParts(directory, session.ids));
    throwIfAborted(ctx.signal);
    return new Model({ ...parts, session, directory });
  }

  /**
   * The pairs with a column `prediction`; unknown users and items by the model's cold-start strategy, or the
   * one given.
   */
  predict(pairs: Dataset, options: { readonly coldStart?: ColdStart } = {}): Dataset {
    this.served.searches.requireOpen();
    requireDataset(pairs, 'predict');
    checkOptions('predict', options, ['coldStart'], "{ coldStart: 'drop' }");
    const { user, item, prediction } = this.columns;
    return pairs.pipe(
      new Predict(
        this.factors,
        { named: pairs.columns, preferred: { user, item }, prediction },
        options.coldStart ?? this.coldStartStrategy,
      ),
    );
  }

  /**
   * RMSE and MAE over the known pairs; cold pairs are counted and never averaged in. Beside them the errors
   * of the mean and of damped means of the training ratings, which the model contains. `breakdown`: the
   * errors by rating, by the number of training ratings of user and item, and how far predictions and ratings
   * agree, over at most a million pairs at even distances.
   */
  async evaluate(
    ratings: Dataset,
    options: RunOptions & { readonly onBadRows?: BadRowPolicy; readonly breakdown?: boolean } = {},
  ): Promise<Evaluation> {
    this.served.searches.requireOpen();
    requireDataset(ratings, 'evaluate');
    checkOptions('evaluate', options, ['onBadRows', 'breakdown', ...runOptionNames], "{ onBadRows: 'skip' }");
    const ctx = this.served.session.context(options);
    const select = new SelectRatings(await ratedPairsOf(ratings, this.columns, ctx), options.onBadRows);
    return runInto(
      andThen(ratings.plan, select),
      new Evaluate(this.factors, {
        means: this.means,
        biases: this.hasBiases,
        breakdown: options.breakdown ? { users: this.userCounts, items: this.itemCounts } : undefined,
      }),
      ctx,
    );
  }

  /**
   * Ranks, for each user of the test pairs, all items that the user has not rated in `exclude`, ties by item
   * id, and measures where the user's test items stand: precision, recall (divided by all positives, and by
   * min(k, positives)), NDCG, MAP and hit rate at each k, MRR, AUC, coverage and novelty, with bootstrap
   * intervals over users and two baselines. Warns of test pairs that were trained on. Throws UsageError for
   * its options, DataError where there are no pairs.
   */
  async evaluateRanking(test: Dataset, options: RankingOptions = {}): Promise<RankingEvaluation> {
    this.served.searches.requireOpen();
    const { evaluateRanking } = await import('./validation/evaluate-ranking.ts');
    return evaluateRanking(this, this.factors, this.served.session, test, options);
  }

  /**
   * A new model, from this one by SGD over new ratings alone. Users and items without new ratings keep their
   * factors; new users and items start at the least-squares solution of their ratings, given the factors of
   * the other side and with the mean row of their own side as prior. For a model by ALS, SGD or Spark. Throws
   * DataError where the ids are of another kind, UsageError for a model with nonnegative factors.
   */
  async update(newRatings: Dataset, options: UpdateOptions = {}): Promise<Model> {
    this.served.searches.requireOpen();
    const { updateModel } = await import('./training/update-model.ts');
    return updateModel({ model: this, factors: this.factors, means: this.means }, newRatings, options);
  }

  /**
   * The physical plan of such an update, printable by `explain` (or String()). Reads the ratings once to
   * count new users and items; trains nothing. Throws UsageError for its options as `update` does, and
   * CapacityError when the problem doesn't fit.
   */
  async planUpdate(newRatings: Dataset, options: UpdateOptions = {}): Promise<ExplainedPlan> {
    this.served.searches.requireOpen();
    const { planUpdate } = await import('./training/update-model.ts');
    return planUpdate({ model: this, factors: this.factors, means: this.means }, newRatings, options);
  }

  /**
   * The n best items of every user: rows {user, rank, item, prediction}, users ascending, best first, ties by
   * item id; with `names` a column `name` after the item.
   */
  recommendForAllUsers(n: number, options: RecommendOptions = {}): Dataset {
    checkRecommend('recommendForAllUsers', options, this.served);
    checkCount(n);
    return withNames(
      recommendAll(this.served, this.factors, n, this.columns, options),
      options.names,
      this.columns.item,
    );
  }

  /**
   * The same for some users, in the order of their ids. Up to 256 are searched for one by one in threads that
   * serve requests alone, which takes less than a millisecond a user once `prepare` has ended. Unknown users
   * get what `unknownUsers` says, which is told as a warning; with `popular` a further column `fallback` is
   * true in their rows, which come last.
   */
  recommendForUsers(ids: readonly Id[], n: number, options: UsersOptions = {}): Dataset {
    checkUsers('recommendForUsers', options, this.served);
    checkIds('recommendForUsers', ids);
    checkCount(n);
    return withNames(recommendSome(this.served, ids, n, options), options.names, this.columns.item);
  }

  /**
   * The n users of highest prediction for every item: rows {item, rank, user, prediction}, items ascending,
   * best first.
   */
  recommendForAllItems(n: number, options: ItemsOptions = {}): Dataset {
    checkItems('recommendForAllItems', options);
    checkCount(n);
    return withNames(recommendUsers(this.served, 'all', n, options), options.names, this.columns.item);
  }

  /**
   * The same for some items, in the order of their ids. Throws UsageError naming the first that the model
   * doesn't know.
   */
  recommendForItems(ids: readonly Id[], n: number, options: ItemsOptions = {}): Dataset {
    checkItems('recommendForItems', options);
    checkIds('recommendForItems', ids);
    checkCount(n);
    return withNames(recommendUsers(this.served, ids, n, options), options.names, this.columns.item);
  }

  /**
   * The n best items of one user, for a request to a server: a search in a thread, and the answer as plain
   * objects. In the place of an id, the ratings of a user whom the model need not know: factors are solved
   * from those first, and the rated items are left out.
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
   * Solves users from their ratings with the items as they are, to the residual of an exact solve (1e-5) and
   * with the model's own regularization: a model of these users alone. Users without a known item are
   * counted. Runs on the session's device.
   */
  async foldIn(ratings: Dataset, options: FoldInOptions = {}): Promise<FoldedUsers> {
    requireDataset(ratings, 'foldIn');
    checkOptions(
      'foldIn',
      options,
      ['regParam', 'onDuplicates', 'onBadRows', ...runOptionNames],
      "{ onDuplicates: 'last' }",
    );
    const { columns, coldStartStrategy, metadata, itemCounts } = this;
    const parts = {
      ...this.factors,
      columns,
      coldStartStrategy,
      metadata,
      itemCounts,
      session: this.served.session,
    };
    return foldInUsers(
      parts,
      ruleOf(this.served, options.regParam),
      ratings,
      options,
      (made) => new Model(made),
    );
  }

  /**
   * Takes a score apart into what each of a user's ratings contributes to it, exactly (Hu, Koren and Volinsky
   * 2008, section 5). A model does not keep ratings: give the user's, or a data set with the model's columns
   * that they are in. Throws UsageError for a user who has none there.
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
   * Reads pairs that are not to be recommended into memory, for any number of calls. Those of unknown ids are
   * counted.
   */
  async exclusions(pairs: Dataset, options: RunOptions = {}): Promise<Exclusions> {
    requireDataset(pairs, 'exclusions');
    checkOptions('exclusions', options, runOptionNames);
    return readExclusions(this.served, pairs, this.served.session.context(options));
  }

  /**
   * Makes what requests for single users need, in a thread: an index of the items of about 1.3 times the size
   * of their factors. Without it the first request makes it. Throws CapacityError.
   */
  async prepare(): Promise<void> {
    const { name, space } = sideSpace(this.served, 'item');
    await this.served.searches.prepare(name, space);
  }

  /**
   * Frees what `prepare` and requests have made, once those under way have ended. Later work throws
   * UsageError, but for saving and reading the factors.
   */
  async close(): Promise<void> {
    await this.served.searches.close();
  }

  /**
   * The n items most like each of the given ones: rows {item, rank, similarItem, similarity}, best first,
   * ties by item id.
   */
  similarItems(ids: readonly Id[] | 'all', n: number, options: SimilarOptions = {}): Dataset {
    return similarRows(this.served, 'item', ids, n, options);
  }

  /** The same for users: rows {user, rank, similarUser, similarity}. */
  similarUsers(ids: readonly Id[] | 'all', n: number, options: SimilarOptions = {}): Dataset {
    return similarRows(this.served, 'user', ids, n, options);
  }
}
