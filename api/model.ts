import { type FixedSizeList, type Float32, RecordBatch, Field, FixedSizeList as FixedSizeListType, Float32 as Float32Type, makeData, Schema, Struct, type TypeMap } from 'apache-arrow';
import { loadModel, saveModel, type StoredModel } from '../connectors/model/model-store.ts';
import { DataError, UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import { keysFromVector, keysToVector } from '../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount, takeKeys } from '../engine/keys/key-column.ts';
import { keysOfIds } from '../engine/keys/keys-of-ids.ts';
import { UNKNOWN_KEY } from '../engine/keys/key-table.ts';
import { andThen, executePlan, runInto } from '../engine/stream/logical-plan.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import type { PhysicalPlan } from '../engine/plan/physical-plan.ts';
import type { AlsParams } from '../operators/als/params.ts';
import type { SgdParams } from '../operators/sgd/params.ts';
import type { Baselines, DampedMeans } from '../operators/evaluation/baselines.ts';
import { Evaluate, type Evaluation } from '../operators/evaluation/evaluate.ts';
import type { RankingEvaluation } from '../operators/evaluation/ranking/evaluate-ranking.ts';
import type { TrainingWarning } from '../operators/evaluation/rating-warnings.ts';
import { type FactorModel, lookupOf } from '../operators/serving/factor-model.ts';
import { collectKnownPairs } from '../operators/ratings/known-pairs.ts';
import { type ColdStart, Predict } from '../operators/serving/predict.ts';
import type { RatingBlock } from '../operators/ratings/rating-block.ts';
import { buildUserBlock } from '../operators/ratings/rating-blocks.ts';
import { Recommend } from '../operators/serving/recommend.ts';
import { checkSimilarity, type Similarity, similarityModel, withoutThemselves } from '../operators/serving/similar.ts';
import { type BadRowPolicy, SelectRatings } from '../operators/ratings/select-ratings.ts';
import type { TrainingIteration } from '../operators/training/iteration.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import type { Dataset } from './dataset.ts';
import { requireDataset } from './require-dataset.ts';
import { savedTraining } from './training/saved-training.ts';
import type { RunOptions, Session } from './session.ts';
import type { ExplainedPlan } from './training/explained-plan.ts';
import type { UpdateOptions } from './training/update-model.ts';
import type { RankingOptions } from './validation/evaluate-ranking.ts';

/** A model's origin; of a loaded model only the facts in its metadata. */
export type TrainingReport = AlsTraining | SgdTraining;

export interface AlsTraining extends TrainingRun {
  readonly algorithm: 'als';
  readonly params: AlsParams;
}

export interface SgdTraining extends TrainingRun {
  readonly algorithm: 'sgd';
  readonly params: SgdParams;
}

/** A training run by either algorithm. */
export interface TrainingRun {
  readonly ratings: number;
  /** Ratings that repeat an earlier (user, item) pair. */
  readonly duplicates: number;
  /** Rows with null, NaN or infinite values that were left out, of the ratings and of the validation set. */
  readonly badRows: number;
  readonly iterations: readonly TrainingIteration[];
  /** The iteration whose factors the model has. */
  readonly bestIteration: number;
  /** Pairs of the validation set, and those of them with an unknown user or item. */
  readonly testPairs?: number;
  readonly coldPairs?: number;
  /** Errors of the training ratings' means over the known pairs of the validation set; absent where it has none, and for an updated model. */
  readonly baselines?: Baselines;
  /** What a user should know about the ratings and the model; each was an event too. */
  readonly warnings: readonly TrainingWarning[];
  readonly seconds: { readonly load: number; readonly train: number };
  /** The plan as it was run: with the cuts and counts of the data, and with the measures of the run. */
  readonly plan: PhysicalPlan;
  /** The plan as it was made, which can be run again. */
  readonly planned: PhysicalPlan;
}

export interface ModelParts extends FactorModel {
  readonly columns: { readonly user: string; readonly item: string; readonly rating: string; readonly prediction: string };
  readonly coldStartStrategy: ColdStart;
  readonly session: Session;
  readonly training?: TrainingReport;
  /** Damped means of the training ratings, the baselines of `evaluate`. */
  readonly means?: DampedMeans;
  /** The metadata of a loaded model beside Spark's own keys. */
  readonly metadata?: JsonObject;
}

export interface SimilarOptions {
  /** 'cosine' (default) or 'dot'. Biases are left out of both. */
  readonly similarity?: Similarity;
}

export interface RecommendOptions {
  /** Pairs that must not be recommended, such as the ratings trained on; pairs of unknown ids are ignored. */
  readonly exclude?: Dataset;
}

/** User and item factors with the ids that they belong to. Immutable. */
export class Model {
  /** f: factors of a user or an item, without biases. */
  readonly rank: number;
  readonly columns: ModelParts['columns'];
  readonly coldStartStrategy: ColdStart;
  readonly training: TrainingReport | undefined;
  readonly metadata: JsonObject;
  readonly #factors: FactorModel;
  readonly #means: DampedMeans | undefined;
  readonly #session: Session;

  constructor(parts: ModelParts) {
    const { rank, users, items, userFactors, itemFactors } = parts;
    this.#factors = { rank, users, items, userFactors, itemFactors };
    this.#means = parts.means;
    this.columns = parts.columns;
    this.coldStartStrategy = parts.coldStartStrategy;
    this.training = parts.training;
    this.metadata = parts.training ? savedTraining(parts.training, users, items, parts.columns.rating, parts.means?.mean) : (parts.metadata ?? {});
    this.rank = rank - (this.#hasBiases ? 2 : 0);
    this.#session = parts.session;
  }

  /** Loads a model folder written by `save` or by Spark ML. Throws DataError naming the file that is missing or wrong. */
  static async load(session: Session, directory: string): Promise<Model> {
    if (typeof (session as Partial<Session> | undefined)?.context !== 'function' || typeof directory !== 'string') throw new UsageError('Model.load takes a session and a folder', { advice: 'Model.load(session, directory)' });
    const stored = await loadModel(directory);
    if (hasBiases(stored.factorflow) && stored.rank < 3) throw new DataError(`the metadata tell of biases, which are two features of ${stored.rank}`, { phase: 'load', file: directory });
    return new Model({
      rank: stored.rank,
      users: keysFromVector(stored.userIds, 'id'),
      items: keysFromVector(stored.itemIds, 'id'),
      userFactors: stored.userFactors,
      itemFactors: stored.itemFactors,
      columns: { ...stored.columns, rating: ratingColumn(stored.factorflow) },
      coldStartStrategy: stored.coldStartStrategy,
      metadata: stored.factorflow,
      means: storedMeans(stored),
      session,
    });
  }

  get userCount(): number {
    return keyCount(this.#factors.users);
  }

  get itemCount(): number {
    return keyCount(this.#factors.items);
  }

  /** Numbers that are stored for each user and item: the rank, and with biases two more. */
  get features(): number {
    return this.#factors.rank;
  }

  /** {id, features: FixedSizeList<float32>[features]}, ids ascending, over the model's own memory. */
  get userFactors(): RecordBatch {
    return factorBatch(this.#factors.users, this.#factors.userFactors, this.features);
  }

  get itemFactors(): RecordBatch {
    return factorBatch(this.#factors.items, this.#factors.itemFactors, this.features);
  }

  /** The pairs with a column `prediction`; unknown users and items by the model's cold-start strategy, or the one given. */
  predict(pairs: Dataset, options: { readonly coldStart?: ColdStart } = {}): Dataset {
    requireDataset(pairs, 'predict');
    checkOptions('predict', options, ['coldStart'], "{ coldStart: 'drop' }");
    const { user, item, prediction } = this.columns;
    return pairs.pipe(new Predict(this.#factors, { user, item, prediction }, options.coldStart ?? this.coldStartStrategy));
  }

  /**
   * RMSE and MAE over the known pairs; cold pairs are counted and never averaged in. Beside them the errors of the mean and of damped
   * means of the training ratings, which the model contains.
   */
  async evaluate(ratings: Dataset, options: RunOptions & { readonly onBadRows?: BadRowPolicy } = {}): Promise<Evaluation> {
    requireDataset(ratings, 'evaluate');
    checkOptions('evaluate', options, ['onBadRows', ...runOptionNames], "{ onBadRows: 'skip' }");
    const { user, item, rating } = this.columns;
    const select = new SelectRatings({ user, item, rating }, options.onBadRows);
    return runInto(andThen(ratings.plan, select), new Evaluate(this.#factors, this.#means), this.#session.context(options));
  }

  /**
   * Ranks, for each user of the test pairs, all items that the user has not rated in `exclude`, ties by item id, and measures where the
   * user's test items stand: precision, recall (divided by all positives, and by min(k, positives)), NDCG, MAP and hit rate at each k,
   * MRR, AUC, coverage and novelty, with bootstrap intervals over users and two baselines. Warns of test pairs that were trained on.
   * Throws UsageError for its options, DataError where there are no pairs.
   */
  async evaluateRanking(test: Dataset, options: RankingOptions = {}): Promise<RankingEvaluation> {
    const { evaluateRanking } = await import('./validation/evaluate-ranking.ts');
    return evaluateRanking(this, this.#factors, this.#session, test, options);
  }

  /**
   * A new model, from this one by SGD over new ratings alone. Users and items without new ratings keep their factors; new users and
   * items start at the least-squares solution of their ratings, given the factors of the other side and with the mean row of their
   * own side as prior. For a model by ALS, SGD or Spark.
   * Throws DataError where the ids are of another kind, UsageError for a model with nonnegative factors.
   */
  async update(newRatings: Dataset, options: UpdateOptions = {}): Promise<Model> {
    const { updateModel } = await import('./training/update-model.ts');
    return updateModel(this, this.#factors, newRatings, options);
  }

  /**
   * The physical plan of such an update, printable by `explain` (or String()). Reads the ratings once to count new users and items;
   * trains nothing. Throws UsageError for its options as `update` does, and CapacityError when the problem doesn't fit.
   */
  async planUpdate(newRatings: Dataset, options: UpdateOptions = {}): Promise<ExplainedPlan> {
    const { planUpdate } = await import('./training/update-model.ts');
    return planUpdate(this, this.#factors, newRatings, options);
  }

  /** The n best items of every user: rows {user, rank, item, prediction}, users ascending, best first. */
  recommendForAllUsers(n: number, options: RecommendOptions = {}): Dataset {
    checkRecommend('recommendForAllUsers', options);
    return this.#recommend(this.#factors, n, options);
  }

  /** The same for some users, in the order of their ids. Throws UsageError naming the first that the model doesn't know. */
  recommendForUsers(ids: readonly (string | number | bigint)[], n: number, options: RecommendOptions = {}): Dataset {
    checkRecommend('recommendForUsers', options);
    const { users, userFactors } = this.#factors;
    const chosen = positionsOf(ids, users, 'user');
    const rows = new Float32Array(chosen.length * this.features);
    chosen.forEach((position, i) => rows.set(userFactors.subarray(position * this.features, (position + 1) * this.features), i * this.features));
    return this.#recommend({ ...this.#factors, users: takeKeys(users, chosen), userFactors: rows }, n, options);
  }

  /** The n items most like each of the given ones: rows {item, rank, similarItem, similarity}, best first. */
  similarItems(ids: readonly (string | number | bigint)[] | 'all', n: number, options: SimilarOptions = {}): Dataset {
    checkOptions('similarItems', options, ['similarity'], "{ similarity: 'dot' }");
    return this.#similar('item', this.#factors.items, this.#factors.itemFactors, ids, n, options);
  }

  /** The same for users: rows {user, rank, similarUser, similarity}. */
  similarUsers(ids: readonly (string | number | bigint)[] | 'all', n: number, options: SimilarOptions = {}): Dataset {
    checkOptions('similarUsers', options, ['similarity'], "{ similarity: 'dot' }");
    return this.#similar('user', this.#factors.users, this.#factors.userFactors, ids, n, options);
  }

  /** Writes the model folder, whole or not at all. An existing one is replaced only with `overwrite`; `signal` cancels. */
  async save(directory: string, options: { readonly overwrite?: boolean; readonly signal?: AbortSignal } = {}): Promise<void> {
    checkOptions('save', options, ['overwrite', 'signal'], '{ overwrite: true }');
    const { rank, users, items, userFactors, itemFactors } = this.#factors;
    const stored: StoredModel = {
      rank,
      userIds: keysToVector(users),
      userFactors,
      itemIds: keysToVector(items),
      itemFactors,
      means: this.#means,
      columns: this.columns,
      coldStartStrategy: this.coldStartStrategy,
      factorflow: this.metadata,
    };
    await saveModel(directory, stored, { overwrite: options.overwrite, signal: options.signal });
  }

  #similar(side: 'user' | 'item', keys: KeyColumn, factors: Float32Array, ids: readonly (string | number | bigint)[] | 'all', n: number, options: SimilarOptions): Dataset {
    checkCount(n);
    const positions = ids === 'all' ? Uint32Array.from({ length: keyCount(keys) }, (_, position) => position) : positionsOf(ids, keys, side);
    const similarity = checkSimilarity(options.similarity ?? 'cosine');
    const model = similarityModel({ ids: keys, factors, rank: this.features, features: this.rank, positions, similarity });
    const name = this.columns[side];
    const columns = { user: name, item: `similar${name.charAt(0).toUpperCase()}${name.slice(1)}`, prediction: 'similarity' };
    return this.#session.source(new Recommend(model, { n, columns, exclude: withoutThemselves, unit: `${side}s` }));
  }

  /** True where the last two features are folded biases. */
  get #hasBiases(): boolean {
    return hasBiases(this.metadata);
  }

  #recommend(factors: FactorModel, n: number, { exclude }: RecommendOptions): Dataset {
    checkCount(n);
    const { user, item, prediction } = this.columns;
    const excluded = exclude && ((ctx: ExecutionContext, model: FactorModel) => excludeBlock(exclude, { user, item }, model, ctx));
    return this.#session.source(new Recommend(factors, { n, columns: { user, item, prediction }, exclude: excluded }));
  }
}

function checkRecommend(method: string, options: RecommendOptions): void {
  checkOptions(method, options, ['exclude'], '{ exclude: dataset }');
  if (options.exclude !== undefined) requireDataset(options.exclude, `the option exclude of ${method}`);
}

function checkCount(n: number): void {
  if (!Number.isInteger(n) || n < 1 || n > 1000) throw new UsageError(`n must be a whole number from 1 to 1,000, got ${n}`);
}

/** Ascending positions of ids; throws UsageError naming the first unknown one. */
function positionsOf(ids: readonly (string | number | bigint)[], keys: KeyColumn, side: 'user' | 'item'): Uint32Array {
  const positions = lookupOf(keys).positionsOf(keysOfIds(ids, keys.type));
  const missing = positions.indexOf(UNKNOWN_KEY);
  if (missing >= 0) throw new UsageError(`the model has no ${side} ${String(ids[missing])}`);
  return Uint32Array.from(new Set(positions)).sort();
}

async function excludeBlock(dataset: Dataset, columns: { user: string; item: string }, model: FactorModel, ctx: ExecutionContext): Promise<RatingBlock> {
  const stream = await executePlan(andThen(dataset.plan, new SelectRatings(columns)), ctx);
  const { indexed } = await collectKnownPairs(stream, model.users, model.items, ctx);
  return (await buildUserBlock(indexed, 'keep', ctx)).byUser;
}

function factorBatch(ids: KeyColumn, factors: Float32Array, rank: number): RecordBatch {
  const idData = keysToVector(ids).data[0];
  const values = makeData({ type: new Float32Type(), length: factors.length, data: factors });
  const type: FixedSizeList<Float32> = new FixedSizeListType(rank, new Field('element', new Float32Type(), false));
  const features = makeData({ type, length: idData.length, nullCount: 0, child: values });
  const schema = new Schema([new Field('id', idData.type, false), new Field('features', type, false)]);
  return new RecordBatch(schema, makeData({ type: new Struct<TypeMap>(schema.fields), length: idData.length, nullCount: 0, children: [idData, features] }));
}

function hasBiases({ params }: JsonObject): boolean {
  return (params as JsonObject | null | undefined)?.biases === true;
}

/** The damped means that a model was saved with. */
function storedMeans({ factorflow: { meanRating }, means }: StoredModel): DampedMeans | undefined {
  return typeof meanRating === 'number' && means ? { mean: meanRating, ...means } : undefined;
}

function ratingColumn(metadata: JsonObject): string {
  return typeof metadata.ratingCol === 'string' ? metadata.ratingCol : 'rating';
}
