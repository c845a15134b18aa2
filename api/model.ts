import type { RecordBatch } from 'apache-arrow';
import { exportFactors, type ExportOptions } from '../connectors/model/export-factors.ts';
import { saveModel } from '../connectors/model/model-store.ts';
import { throwIfAborted, UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import { type Id, findId, type IdForm } from '../engine/keys/find-id.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { followed } from '../engine/run/context.ts';
import { andThen, runInto } from '../engine/stream/logical-plan.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { evaluate, type Evaluation } from '../operators/evaluation/evaluate.ts';
import type { RankingEvaluation } from '../operators/evaluation/ranking/evaluate-ranking.ts';
import type { DampedMeans } from '../operators/evaluation/rating-facts.ts';
import { type BadRowPolicy, SelectRatings } from '../operators/ratings/rows/select-ratings.ts';
import { type Exclusions, exclusionsOf } from '../operators/serving/choose-items.ts';
import { type FactorModel, swappedModel } from '../operators/serving/factor-model.ts';
import { type ColdStart, Predict } from '../operators/serving/predict.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import { type Dataset, requireDataset } from './dataset.ts';
import { ratedPairsOf } from './found-columns.ts';
import { continuedRows, savedRows, type RatedRows } from './histories.ts';
import { modelFacts, modelText } from './inspect/model-facts.ts';
import { loadedParts, storedParts, savedTraining } from './loaded-parts.ts';
import { hasBiases, joinedFactors, type ModelParts, type Sides, sidesOf } from './model-parts.ts';
import type { TrainingReport } from './reports/training-report.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import {
  buildIndex,
  type BuildIndexOptions,
  type BuiltIndex,
  ItemIndexes,
  saveIndexes,
  type ServedModel,
} from './serving/build-index.ts';
import {
  type AddedRows,
  type AddRowsOptions,
  coefficientBatch,
  type GivenRows,
  partsWithRows,
} from './serving/cold-rows.ts';
import { attributeShares } from './serving/attribute-shares.ts';
import { explainItem, type ExplainOptions, type Explanation } from './serving/explain.ts';
import { type FactorArrays, factorArrays, factorBatch, idColumnOf } from './serving/factor-arrays.ts';
import { type GivenUser, type RatedItem, recommendFromRatings } from './serving/fold-in-request.ts';
import {
  type FoldedCounts,
  type FoldedItemCounts,
  foldInItems,
  type FoldInOptions,
  foldInUsers,
} from './serving/fold-in.ts';
import { type ItemFilters, type ItemFiltersOptions, readItemFilters } from './serving/item-filters.ts';
import { ratingsOfUser, type RatingsOfUser } from './serving/ratings-of-user.ts';
import {
  checkItems,
  checkRecommend,
  checkUsers,
  type ItemsOptions,
  readExclusions,
  recommendAll,
  type RecommendOptions,
  recommendSome,
  recommendUsers,
  similarRows,
  type UsersOptions,
} from './serving/recommend-datasets.ts';
import {
  checkCount,
  checkIds,
  checkNames,
  checkRequest,
  recommendToUser,
  type RequestOptions,
  type UserRecommendations,
} from './serving/request.ts';
import { Searches } from './serving/searches.ts';
import { ModelPriors } from './serving/user-priors.ts';
import {
  checkIndexUse,
  idFormsOf,
  idsOf,
  itemRuleOf,
  type IndexOption,
  preparedIndex,
  ruleOf,
  scoreOfPair,
  sideSpace,
} from './serving/served-model.ts';
import {
  type SimilarOptions,
  findSimilar,
  type SimilarItems,
  type SimilarTo,
  type SimilarUsers,
} from './serving/similar-to.ts';
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

/** A model with items that were solved from their ratings. */
export interface FoldedItems extends FoldedItemCounts {
  readonly model: Model;
}

const foldInNames = ['regParam', 'onDuplicates', 'onBadRows', ...runOptionNames] as const;

export interface SaveOptions {
  /** Replaces an existing model. */
  readonly overwrite?: boolean;
  readonly signal?: AbortSignal;
  /** Saves what each user has rated, too. Default: not. */
  readonly histories?: true | Dataset;
}

/** Data that requests use with one model. */
interface OfModel {
  readonly exclude?: Exclusions | undefined;
  readonly filters?: ItemFilters | undefined;
}

/** User and item factors with their ids: predicts, recommends, answers requests, and is evaluated. Immutable. */
export class Model {
  /** f: factors of a user or an item, without biases. */
  readonly rank: number;
  readonly columns: ModelParts['columns'];
  readonly coldStartStrategy: ColdStart;
  readonly training: TrainingReport | undefined;
  readonly metadata: JsonObject;
  /**
   * Number of ratings of each item, in the order of `itemFactors`; undefined for models of Spark and of
   * releases that did not save them.
   */
  readonly itemCounts: Uint32Array | undefined;
  /**
   * Number of ratings of each user, in the order of `userFactors`; undefined for models without attributes of
   * users that were loaded, and for those that continue them.
   */
  readonly userCounts: Uint32Array | undefined;
  /** @internal Means of the training ratings, for a model with a training report. */
  readonly means: DampedMeans | undefined;
  /** @internal What users have rated in training, if it can be read again. */
  rated: RatedRows | undefined;
  /** @internal Attributes with their coefficients. */
  readonly attributes: ModelParts['attributes'];
  /** @internal The model in the form that functions of other files take. */
  private readonly served: ServedModel;
  readonly #priors: ModelPriors | undefined;
  readonly #sides: Sides;
  readonly #directory: string | undefined;

  constructor(parts: ModelParts) {
    const { rank, users, items } = parts;
    this.#sides = sidesOf(parts);
    this.means = parts.means;
    this.columns = parts.columns;
    this.coldStartStrategy = parts.coldStartStrategy;
    this.training = parts.training;
    this.metadata = parts.training
      ? savedTraining(parts.training, users, items, parts.columns.rating, parts.means?.mean)
      : (parts.metadata ?? {});
    this.rank = rank - (this.hasBiases ? 2 : 0);
    this.itemCounts = parts.itemCounts;
    this.userCounts = parts.userCounts;
    this.rated = parts.rated;
    this.attributes = parts.attributes;
    this.#directory = parts.directory;
    const factors = joinedFactors(parts, this.#sides);
    const { user: ofUsers, item: ofItems } = parts.attributes ?? {};
    this.#priors = ofUsers && new ModelPriors(ofUsers, factors, parts.userCounts);
    this.served = {
      factors,
      rank: this.rank,
      itemCounts: this.itemCounts,
      columns: this.columns,
      session: parts.session,
      searches: new Searches(parts.session),
      indexes: parts.indexes instanceof ItemIndexes ? parts.indexes : new ItemIndexes(factors, parts.indexes),
      metadata: this.metadata,
      priors: this.#priors,
      sharesOfAttributes:
        ofItems && ((item, user) => attributeShares(ofItems, factors.items.type, item, user)),
    };
  }

  get userCount(): number {
    return keyCount(this.factors.users);
  }

  get itemCount(): number {
    return keyCount(this.factors.items);
  }

  /**
   * The JavaScript type of the ids of each side in results; the option `ids` of Session.create can force one.
   * Throws UsageError if the forced type cannot hold an id.
   */
  get idForms(): Readonly<Record<'user' | 'item', IdForm>> {
    return idFormsOf(this.served);
  }

  /** Numbers stored for each user and item: the rank, plus two with biases. */
  get features(): number {
    return this.factors.rank;
  }

  /** {id, features: FixedSizeList<float32>[features]}, ids ascending, as views of the model's memory. */
  get userFactors(): RecordBatch {
    return factorBatch(this.factors.users, this.factors.userFactors, this.features);
  }

  get itemFactors(): RecordBatch {
    return factorBatch(this.factors.items, this.factors.itemFactors, this.features);
  }

  /** User factors with their ids as typed arrays. */
  get userArrays(): FactorArrays {
    return factorArrays(
      this.factors.users,
      idsOf(this.served, 'user'),
      this.factors.userFactors,
      this.features,
    );
  }

  get itemArrays(): FactorArrays {
    return factorArrays(
      this.factors.items,
      idsOf(this.served, 'item'),
      this.factors.itemFactors,
      this.features,
    );
  }

  /**
   * Coefficients of the attributes of items, if the model was trained with them: rows {column, value, weight,
   * coefficients: list of float32}, by feature. An item without ratings has the factors Σ f_j coefficients_j
   * (with biases), where f_j is 1 for the first row, and for the others as docs/attributes.md says.
   */
  get itemCoefficients(): RecordBatch | undefined {
    return coefficientBatch(this.attributes?.item);
  }

  /** The same for users. */
  get userCoefficients(): RecordBatch | undefined {
    return coefficientBatch(this.attributes?.user);
  }

  /**
   * A new model with further items, whose factors follow from their attributes: no training. `rows`: a data
   * set, the path of a file, or objects, with the columns of the training's attributes. Items with ratings keep
   * their factors; items without get those of their new attributes. The model has no index of lists, unless
   * no item changes. Throws UsageError for a model that was trained without attributes of items, DataError for
   * a value that does not fit.
   */
  async withItems(rows: GivenRows, options: AddRowsOptions = {}): Promise<Model> {
    return (await this.extended('item', rows, options)).model;
  }

  /** The same for users; those that the model has keep their factors. */
  async withUsers(rows: GivenRows, options: AddRowsOptions = {}): Promise<Model> {
    return (await this.extended('user', rows, options)).model;
  }

  /** @internal The model with further rows, and their numbers; for a server. */
  async extended(
    side: 'user' | 'item',
    rows: GivenRows,
    options: AddRowsOptions,
  ): Promise<AddedRows & { readonly model: Model }> {
    const { model, ...added } = await partsWithRows(this.#parts, side, rows, options);
    return { ...added, model: new Model(model) };
  }

  /** @internal What was read for a model to which rows were added, for this one. */
  carried({ exclude, filters }: OfModel): OfModel {
    const { factors } = this.served;
    return { exclude: exclude && exclusionsOf(exclude, factors), filters: filters?.of(factors.items) };
  }

  /** The model as the constructor takes it. */
  get #parts(): ModelParts {
    const { users, items } = this.factors;
    return {
      rank: this.features,
      users,
      items,
      userFactors: this.#sides.user.rows,
      itemFactors: this.#sides.item.rows,
      itemCounts: this.itemCounts,
      userCounts: this.userCounts,
      columns: this.columns,
      coldStartStrategy: this.coldStartStrategy,
      session: this.served.session,
      training: this.training,
      means: this.means,
      metadata: this.metadata,
      rated: this.rated,
      attributes: this.attributes,
      indexes: this.served.indexes,
    };
  }

  /**
   * Writes the factors of both sides for other programs, as NumPy arrays, Parquet or safetensors, in float32
   * (default) or float16; completely or not at all.
   */
  async exportFactors(directory: string, options: Partial<ExportOptions> = {}): Promise<void> {
    checkOptions(
      'exportFactors',
      options,
      ['format', 'precision', 'overwrite', 'signal'],
      "{ format: 'npy' }",
    );
    const { users, items, userFactors, itemFactors } = this.factors;
    const sides = {
      user: { ids: idColumnOf(users), factors: userFactors },
      item: { ids: idColumnOf(items), factors: itemFactors },
    };
    await exportFactors(directory, sides, this.features, options);
  }

  /**
   * The ratings of each user, as rows {user, item, rating}, if the model was saved with them (option
   * `histories` of `save`) or is an update of such a model. Else undefined.
   */
  get histories(): Dataset | undefined {
    return this.rated?.saved === true ? this.rated.rows : undefined;
  }

  hasUser(id: Id): boolean {
    return findId(this.factors.users, id) >= 0;
  }

  hasItem(id: Id): boolean {
    return findId(this.factors.items, id) >= 0;
  }

  /** Algorithm, rank, users, items, measures, origin and columns. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const { users, items } = this.factors;
    const shape = {
      users: this.userCount,
      items: this.itemCount,
      idTypes: { user: users.type, item: items.type },
      columns: this.columns,
      coldStartStrategy: this.coldStartStrategy,
      features: this.features,
    };
    return modelText(
      modelFacts(shape, this.metadata),
      this.#directory ?? (this.training === undefined ? 'another model' : 'training in this process'),
    );
  }

  /**
   * Writes the model folder, completely or not at all. An existing folder is only replaced with `overwrite`;
   * `signal` cancels. `histories`: also writes what each user has rated, by which a loaded model excludes and
   * evaluates: true for the ratings of the training (if they were read from files) or of the loaded model,
   * else a data set with them. Throws UsageError if the model does not know them.
   */
  async save(directory: string, options: SaveOptions = {}): Promise<void> {
    checkOptions('save', options, ['overwrite', 'signal', 'histories'], '{ overwrite: true }');
    const { histories, signal } = options;
    if (histories === undefined) return this.saveLists(directory, options, undefined);
    if (histories !== true) requireDataset(histories, 'the option histories of save');
    const ctx = this.served.session.context({ signal });
    const { historyLists } = await import('./histories.ts');
    await this.saveLists(directory, options, await historyLists(this.columns, this.rated, histories, ctx));
  }

  /** @internal Saves the model with histories in the form {id, items, weights} by ascending id. */
  async saveLists(
    directory: string,
    options: Pick<SaveOptions, 'overwrite' | 'signal'>,
    lists: BatchStream | undefined,
  ): Promise<void> {
    using _ = this.served.session.beginPhase('save');
    const stored = storedParts(
      {
        users: this.factors.users,
        items: this.factors.items,
        rank: this.features,
        userFactors: this.#sides.user.rows,
        itemFactors: this.#sides.item.rows,
      },
      {
        columns: this.columns,
        coldStartStrategy: this.coldStartStrategy,
        metadata: this.metadata,
        itemCounts: this.itemCounts,
        userCounts: this.userCounts,
        means: this.means,
        attributes: this.attributes,
      },
    );
    const ctx = this.served.session.context({ signal: options.signal });
    const { executor, metrics, signal } = ctx;
    const underWay = () => this.served.session.saving();
    await followed(ctx, () =>
      saveModel(
        directory,
        { ...stored, histories: lists },
        { overwrite: options.overwrite, signal, executor, metrics, underWay },
      ),
    );
  }

  /** @internal True if the last two features are folded biases. */
  private get hasBiases(): boolean {
    return hasBiases(this.metadata);
  }

  /** @internal Sides are joined when they are first read. */
  private get factors(): FactorModel {
    return this.served.factors;
  }

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
      evaluate(this.factors, {
        means: this.means,
        biases: this.hasBiases,
        counts: { users: this.userCounts, items: this.itemCounts },
        breakdown: options.breakdown,
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
   * their factors; new users and items, and those that the model has by their attributes alone, start at the
   * least-squares solution of their ratings, given the factors of the other side. Their prior is what their
   * attributes predict, or the mean row of their own side. Works for a model by ALS, SGD
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
    const rated = continuedRows(this.rated, made.rated, ids, !isImplicit(this.metadata));
    return new Model({ ...made.#parts, attributes: this.attributes, rated });
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
    return recommendAll(this.served, this.factors, n, this.columns, options);
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
    return recommendSome(this.served, ids, n, options);
  }

  /**
   * The n users with the highest predictions for every item: rows {item, rank, user, prediction}, items
   * ascending, best first.
   */
  recommendForAllItems(n: number, options: ItemsOptions = {}): Dataset {
    checkItems('recommendForAllItems', options);
    checkCount(n);
    return recommendUsers(this.served, 'all', n, options);
  }

  /** The best users of some items, in the order of their ids. Throws UsageError for an unknown item. */
  recommendForItems(ids: readonly Id[], n: number, options: ItemsOptions = {}): Dataset {
    checkItems('recommendForItems', options);
    checkIds('recommendForItems', ids);
    checkCount(n);
    return recommendUsers(this.served, ids, n, options);
  }

  /**
   * Solves users from their ratings with unchanged items, to the residual of an exact solve (1e-5) and with
   * the model's own regularization, drawn to what the attributes predict that the model knows of each user.
   * Returns a model of these users only, and counts the users without a known item. Runs on the session's
   * device.
   */
  async foldIn(ratings: Dataset, options: FoldInOptions = {}): Promise<FoldedUsers> {
    requireDataset(ratings, 'foldIn');
    checkOptions('foldIn', options, foldInNames, "{ onDuplicates: 'last' }");
    const { columns, coldStartStrategy, metadata, itemCounts } = this;
    const { session } = this.served;
    const parts = { ...this.factors, columns, coldStartStrategy, metadata, itemCounts, session };
    const folding = { rule: ruleOf(this.served, options.regParam), priors: this.#priors };
    return foldInUsers(parts, folding, ratings, options, (made) => new Model(made));
  }

  /**
   * Solves items from their ratings with unchanged users, as `foldIn` solves users: items that the model does
   * not have, and those that it has by their attributes alone. Each is drawn to what its attributes predict, if
   * the model has them, else to what is predicted without; items with ratings keep their factors. Returns a new
   * model with all items, without an index of lists. Unlike `update`, no other factors change.
   */
  async foldInItems(ratings: Dataset, options: FoldInOptions = {}): Promise<FoldedItems> {
    requireDataset(ratings, 'foldInItems');
    checkOptions('foldInItems', options, foldInNames, "{ onDuplicates: 'last' }");
    const rule = itemRuleOf(this.served, options.regParam);
    const ofItems = this.attributes?.item;
    const priors = ofItems && new ModelPriors(ofItems, swappedModel(this.factors), this.itemCounts);
    const parts = { ...this.#parts, ...this.factors };
    return foldInItems(parts, { rule, priors }, ratings, options, (made) => new Model(made));
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

  /**
   * The n best items of one user as plain objects, for a request to a server; searched in a thread. Instead
   * of an id, ratings can be given, of a user who need not be in the model: factors are solved from them
   * first, and the rated items are left out. In a model with attributes of users the user is drawn to what
   * `attributes`, or those of `user`, predict.
   */
  async recommend(
    user: Id | GivenUser,
    n: number,
    options: RequestOptions = {},
  ): Promise<UserRecommendations> {
    checkRequest(options, this.served);
    checkCount(n);
    return typeof user === 'object' && user !== null
      ? recommendFromRatings(this.served, user, n, options)
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
   * columns that contains them. In a model with attributes of users these have a share, too; with attributes of
   * items, `itemAttributes` says what the item's add. Throws UsageError for a user who has no ratings there.
   */
  async explain(
    ratings: readonly RatedItem[] | GivenUser | RatingsOfUser,
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
