import { throwIfAborted, UsageError } from '../engine/errors.ts';
import type { Id } from '../engine/keys/find-id.ts';
import { followed } from '../engine/run/context.ts';
import { andThen, runInto } from '../engine/stream/logical-plan.ts';
import { Evaluate, type Evaluation } from '../operators/evaluation/evaluate.ts';
import type { RankingEvaluation } from '../operators/evaluation/ranking/evaluate-ranking.ts';
import type { BadRowPolicy } from '../operators/ratings/rows/bad-rows.ts';
import { SelectRatings } from '../operators/ratings/rows/select-ratings.ts';
import { type ColdStart, Predict } from '../operators/serving/predict.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import { type Dataset, requireDataset } from './dataset.ts';
import { ratedPairsOf } from './found-columns.ts';
import { continuedRows, savedRows } from './histories.ts';
import { loadedParts } from './loaded-parts.ts';
import { RequestModel } from './request-model.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import { type FoldedCounts, type FoldInOptions, foldInUsers } from './serving/fold-in.ts';
import { withNames } from './serving/name-columns.ts';
import {
  checkItems,
  checkRecommend,
  checkUsers,
  type ItemsOptions,
  recommendAll,
  type RecommendOptions,
  recommendSome,
  recommendUsers,
  type UsersOptions,
} from './serving/recommend-datasets.ts';
import { checkCount, checkIds } from './serving/request.ts';
import { ruleOf } from './serving/served-model.ts';
import { similarRows } from './serving/similar-rows.ts';
import type { SimilarOptions } from './serving/similar-to.ts';
import type { ExplainedPlan } from './training/plans/explained-plan.ts';
import type { UpdateOptions } from './training/update-options.ts';
import { isImplicit } from './validation/error-metrics.ts';
import type { RankingOptions } from './validation/ranking-options.ts';

/**
 * Users whose factors were computed from their ratings (folded in), as a model of these users only, with
 * unchanged items.
 */
export interface FoldedUsers extends FoldedCounts {
  readonly model: Model;
}

/** User and item factors with their ids: predicts, recommends, and is evaluated. Immutable. */
export class Model extends RequestModel {
  /**
   * Loads a model folder written by `save` or by Spark ML, in a thread. Throws DataError naming a missing or
   * wrong file, and a file that belongs to another model.
   */
  static async load(session: RunSession, directory: string, options: RunOptions = {}): Promise<Model> {
    if (
      typeof (session as Partial<RunSession> | undefined)?.context !== 'function' ||
      typeof directory !== 'string'
    )
      throw new UsageError('Model.load takes a session and a folder', {
        advice: 'Model.load(session, directory)',
      });
    checkOptions('Model.load', options, runOptionNames, '{ onEvent }');
    const ctx = session.context(options);
    using _ = session.beginPhase('load model');
    const parts = await followed(ctx, () => loadedParts(directory, session.ids, ctx.events));
    throwIfAborted(ctx.signal);
    const rated = parts.hasHistories ? await savedRows(directory, session) : undefined;
    return new Model({ ...parts, session, directory, rated });
  }

  /**
   * The pairs with a column `prediction`. Unknown users and items follow the model's cold-start strategy, or
   * the given one.
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
   * RMSE and MAE over the known pairs; cold pairs are counted and never averaged in. Also the errors of the
   * mean and of damped means of the training ratings, which the model contains. `breakdown`: the errors by
   * rating and by number of training ratings of user and item, and the agreement of predictions and ratings,
   * over at most a million evenly spaced pairs. Throws UsageError for a model of implicit data.
   */
  async evaluate(
    ratings: Dataset,
    options: RunOptions & { readonly onBadRows?: BadRowPolicy; readonly breakdown?: boolean } = {},
  ): Promise<Evaluation> {
    this.served.searches.requireOpen();
    requireDataset(ratings, 'evaluate');
    if (isImplicit(this.metadata.params))
      throw new UsageError('implicit data have no RMSE; measure rankings by evaluateRanking', {
        advice: "For example evaluateRanking(test, { metrics: ['ndcg'], k: 20, exclude: train })",
      });
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
   * For each user of the test pairs, ranks all items that the user has not rated in `exclude`, and measures
   * the ranks of the user's test items: precision, recall (divided by all positives, and by
   * min(k, positives)), NDCG, MAP and hit rate at each k, MRR, AUC, coverage and novelty, with bootstrap
   * intervals over users and two baselines. Items with equal scores have no order: metrics are expected
   * values over their orders. Warns of test pairs that were trained on. Throws UsageError for
   * its options, DataError if there are no pairs.
   */
  async evaluateRanking(test: Dataset, options: RankingOptions = {}): Promise<RankingEvaluation> {
    this.served.searches.requireOpen();
    const { evaluateRanking } = await import('./validation/evaluate-ranking.ts');
    return evaluateRanking(this, this.factors, this.served.session, test, options);
  }

  /**
   * A new model, trained from this one by SGD over new ratings only. Users and items without new ratings keep
   * their factors; new users and items start at the least-squares solution of their ratings, given the
   * factors of the other side and with the mean row of their own side as prior. Works for a model by ALS, SGD
   * or Spark. Throws DataError if ids have another type, UsageError for a model with nonnegative factors.
   */
  async update(newRatings: Dataset, options: UpdateOptions = {}): Promise<Model> {
    this.served.searches.requireOpen();
    const [{ updateModel }, { isImplicit }] = await Promise.all([
      import('./training/update-model.ts'),
      import('./training/update-implicit.ts'),
    ]);
    const updated = { model: this, factors: this.factors, means: this.means };
    const made = await updateModel(updated, newRatings, options);
    const { users, items } = made.factors;
    const ids = { user: users.type, item: items.type };
    made.rated = continuedRows(this.rated, made.rated, ids, !isImplicit(this.metadata));
    return made;
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
   * The n best items of some users, in the order of their ids. Up to 256 users are searched one by one in
   * threads that only serve requests: less than a millisecond per user after `prepare`. Unknown users are
   * handled as `unknownUsers` says, with a warning; with `popular` their rows come last, and a further column
   * `fallback` is true in them.
   */
  recommendForUsers(ids: readonly Id[], n: number, options: UsersOptions = {}): Dataset {
    checkUsers('recommendForUsers', options, this.served);
    checkIds('recommendForUsers', ids);
    checkCount(n);
    return withNames(recommendSome(this.served, ids, n, options), options.names, this.columns.item);
  }

  /**
   * The n users with the highest predictions for every item: rows {item, rank, user, prediction}, items
   * ascending, best first.
   */
  recommendForAllItems(n: number, options: ItemsOptions = {}): Dataset {
    checkItems('recommendForAllItems', options);
    checkCount(n);
    return withNames(recommendUsers(this.served, 'all', n, options), options.names, this.columns.item);
  }

  /** The best users of some items, in the order of their ids. Throws UsageError for an unknown item. */
  recommendForItems(ids: readonly Id[], n: number, options: ItemsOptions = {}): Dataset {
    checkItems('recommendForItems', options);
    checkIds('recommendForItems', ids);
    checkCount(n);
    return withNames(recommendUsers(this.served, ids, n, options), options.names, this.columns.item);
  }

  /**
   * Solves users from their ratings with unchanged items, to the residual of an exact solve (1e-5) and with
   * the model's own regularization. Returns a model of these users only, and counts the users without a known
   * item. Runs on the session's device.
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
   * The n items most similar to each given item: rows {item, rank, similarItem, similarity}, best first, ties
   * by item id. A warning reports the number of unknown items.
   */
  similarItems(ids: readonly Id[] | 'all', n: number, options: SimilarOptions = {}): Dataset {
    return similarRows(this.served, 'item', ids, n, options);
  }

  /** The same for users: rows {user, rank, similarUser, similarity}. */
  similarUsers(ids: readonly Id[] | 'all', n: number, options: SimilarOptions = {}): Dataset {
    return similarRows(this.served, 'user', ids, n, options);
  }
}
