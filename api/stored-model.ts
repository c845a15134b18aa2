import type { RecordBatch } from 'apache-arrow';
import { exportFactors, type ExportOptions } from '../connectors/model/export-factors.ts';
import { saveModel } from '../connectors/model/model-store.ts';
import type { JsonObject } from '../engine/json.ts';
import { findId, type Id } from '../engine/keys/find-id.ts';
import type { IdForm } from '../engine/keys/id-form.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { followed } from '../engine/run/context.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import type { DampedMeans } from '../operators/evaluation/baselines.ts';
import type { FactorModel } from '../operators/serving/factor-model.ts';
import type { ColdStart } from '../operators/serving/predict.ts';
import { checkOptions } from './check-options.ts';
import { type Dataset, requireDataset } from './dataset.ts';
import type { RatedRows } from './histories.ts';
import { modelFacts, modelText } from './inspect/model-facts.ts';
import { storedParts } from './loaded-parts.ts';
import { hasBiases, joinedFactors, type ModelParts, type Sides, sidesOf } from './model-parts.ts';
import type { TrainingReport } from './reports/training-report.ts';
import { type FactorArrays, factorArrays, factorBatch, idColumnOf } from './serving/factor-arrays.ts';
import { ItemIndexes } from './serving/item-indexes.ts';
import { Searches } from './serving/searches.ts';
import { idFormsOf, idsOf, type ServedModel } from './serving/served-model.ts';
import { savedTraining } from './training/saved-training.ts';

export interface SaveOptions {
  /** Replaces an existing model. */
  readonly overwrite?: boolean;
  readonly signal?: AbortSignal;
  /** Saves what each user has rated, too. Default: not. */
  readonly histories?: true | Dataset;
}

/** The data of a model: ids, factors, columns and origin; reads, exports and saves them. */
export class StoredModel {
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
   * Number of ratings of each user, in the order of `userFactors`; undefined for models that were loaded or
   * continued from another.
   */
  readonly userCounts: Uint32Array | undefined;
  /** @internal Means of the training ratings, for a model with a training report. */
  readonly means: DampedMeans | undefined;
  /** @internal What users have rated in training, if it can be read again. */
  rated: RatedRows | undefined;
  /** @internal The model in the form that functions of other files take. */
  protected readonly served: ServedModel;
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
    this.#directory = parts.directory;
    const factors = joinedFactors(parts, this.#sides);
    this.served = {
      factors,
      rank: this.rank,
      itemCounts: this.itemCounts,
      columns: this.columns,
      session: parts.session,
      searches: new Searches(parts.session),
      indexes: new ItemIndexes(factors, parts.indexes),
      metadata: this.metadata,
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
        means: this.means,
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
  protected get hasBiases(): boolean {
    return hasBiases(this.metadata);
  }

  /** @internal Sides are joined when they are first read. */
  protected get factors(): FactorModel {
    return this.served.factors;
  }
}
