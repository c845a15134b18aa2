import { DataType } from 'apache-arrow';
import { DataError, UsageError } from '../engine/errors.ts';
import { idValues } from '../engine/keys/find-id.ts';
import type { KeyType } from '../engine/keys/key-column.ts';
import { oneOf } from '../engine/nearest.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import {
  andThen,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  runInto,
  schemaOf,
} from '../engine/stream/logical-plan.ts';
import { loadingNeed, requireRows, rowsWithin } from '../operators/planner/memory-budget.ts';
import { blockLimit, spilledBytes } from '../operators/planner/sizes.ts';
import { readPairs, type ReadPairs } from '../operators/ratings/ids/known-pairs.ts';
import type { IndexedRatings } from '../operators/ratings/ids/number-ids.ts';
import type { WantedRecency } from '../operators/ratings/measure-recency.ts';
import { loadedOnce } from '../operators/ratings/kept-forms.ts';
import { typesOf } from '../operators/ratings/reading/rating-chunk.ts';
import { readRatings } from '../operators/ratings/reading/read-ratings.ts';
import { type ColumnNames, usualNames } from '../operators/ratings/rows/column-names.ts';
import type { Weighing } from '../operators/ratings/rows/recency.ts';
import { type BadRowPolicy, SelectRatings } from '../operators/ratings/rows/select-ratings.ts';
import type { ColdStart } from '../operators/serving/predict.ts';
import { countTimeSizes } from '../operators/splits/time-split.ts';
import type { DuplicatePolicy } from '../operators/tasks/tasks.ts';
import type { Dataset } from './dataset.ts';
import { definedNames, withFoundColumns } from './found-columns.ts';
import { requireReplayable } from './run-rows.ts';
import { keptAs, keptForms } from './training/kept-ratings.ts';

export interface IndexingOptions {
  /**
   * True: if the ratings exceed one block or the memory budget, they are trained on in parts, which are in
   * files if memory cannot hold them. Default: such ratings are an error.
   */
  readonly inParts?: boolean;
}

/** Prepares ratings for a trainer: columns, policies for bad rows and duplicates, and numbering of ids. */
export class RatingInput {
  /** The columns, unless a data set names others. */
  readonly columns: Required<ColumnNames>;
  readonly #given: ColumnNames;
  readonly #preferred: ColumnNames | undefined;
  readonly coldStartStrategy: ColdStart;
  readonly onDuplicates: DuplicatePolicy;
  readonly onBadRows: BadRowPolicy;
  readonly #options: RatingOptions;
  readonly #recency: WantedRecency | undefined;
  /** Known once `weighed` has read the times. */
  readonly weighing: FoundWeighing | undefined;

  /**
   * `preferred`: the columns of a model, used if the data have them. `recency`: ratings become weights that
   * halve with their age, by `weighed`. Throws UsageError naming an option that is out of range or has no
   * effect.
   */
  constructor(
    options: RatingOptions,
    preferred?: Pick<ColumnNames, 'user' | 'item' | 'rating'>,
    recency?: WantedRecency,
    weighing?: FoundWeighing,
  ) {
    const { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows } = options;
    this.#options = options;
    this.#recency = recency;
    this.weighing = weighing;
    this.#given = definedNames({ user: userCol, item: itemCol, rating: ratingCol, timestamp: timestampCol });
    this.#preferred = preferred;
    const { user, item, rating, timestamp } = { ...usualNames, ...preferred, ...this.#given };
    this.columns = { user, item, rating, timestamp };
    this.coldStartStrategy = oneOf('coldStartStrategy', coldStartStrategy ?? 'nan', ['nan', 'drop']);
    this.onDuplicates = oneOf('onDuplicates', onDuplicates ?? 'keep', [
      'keep',
      'error',
      'last',
      'mean',
      'sum',
    ]);
    this.onBadRows = oneOf('onBadRows', onBadRows ?? 'error', ['error', 'skip']);
    if (timestampCol !== undefined && !this.#needsTimes)
      throw new UsageError("timestampCol acts only with halfLife, or with onDuplicates 'last'");
  }

  /**
   * The data set with the names of its columns, which the other methods need. Throws the errors of
   * withFoundColumns.
   */
  async found(dataset: Dataset, ctx: Pick<ExecutionContext, 'events' | 'signal'>): Promise<Dataset> {
    const roles = this.#needsTimes
      ? (['user', 'item', 'rating', 'timestamp'] as const)
      : (['user', 'item', 'rating'] as const);
    return keptAs(
      await withFoundColumns(dataset, { roles, given: this.#given, preferred: this.#preferred }, ctx),
      dataset,
    );
  }

  /** True if ratings need a column of times. */
  get #needsTimes(): boolean {
    return this.onDuplicates === 'last' || this.#recency !== undefined;
  }

  /**
   * The input that reads these ratings as weights that halve with their age; itself without a half-life. Reads
   * the times and ratings once, for the latest time and the formula of the weights. Later ratings of a model
   * need no times: without them, they are of now, and have no `weighing`. Throws DataError for times of unknown
   * unit.
   */
  async weighed(ratings: Dataset, ctx: ExecutionContext): Promise<RatingInput> {
    const recency = this.#recency;
    if (recency === undefined) return this;
    const { rating, timestamp } = this.columnsOf(ratings);
    if ('weight' in recency && this.#options.timestampCol === undefined) {
      const { fields } = await ratings.schema({ signal: ctx.signal });
      if (!fields.some(({ name }) => name === timestamp)) {
        ctx.events({ type: 'note', text: 'the ratings have no times, so none has lost weight by its age' });
        return new RatingInput(this.#options, this.#preferred);
      }
    }
    requireReplayable(ratings, 'halfLife');
    const { isoOf, measureRecency, weighingOf } = await import('../operators/ratings/measure-recency.ts');
    const name = `recency ${JSON.stringify([rating, timestamp, recency.now])}`;
    const facts = await loadedOnce(keptForms(ratings), name, () =>
      runInto(ratings.plan, measureRecency({ rating, timestamp }, recency.now), ctx),
    );
    const by = weighingOf(facts, recency, timestamp, ctx);
    const iso = isoOf(by.now / (facts.units ?? 1));
    return new RatingInput(this.#options, this.#preferred, recency, { ...by, iso });
  }

  /** Like `found`, for a validation set; its times are not used. */
  async foundTest(dataset: Dataset, ctx: Pick<ExecutionContext, 'events' | 'signal'>): Promise<Dataset> {
    const { timestamp: _timestamp, ...given } = this.#given;
    return keptAs(
      await withFoundColumns(
        dataset,
        { roles: ['user', 'item', 'rating'], given, preferred: this.#preferred },
        ctx,
      ),
      dataset,
    );
  }

  /** The columns of a data set. */
  columnsOf({ columns }: Dataset): RatingInput['columns'] {
    return { ...this.columns, ...columns };
  }

  /**
   * A key for caching loaded ratings: all settings that affect them, as text. The data set is not part of it.
   */
  form(dataset: Dataset): string {
    return JSON.stringify([this.columnsOf(dataset), this.onDuplicates, this.onBadRows, this.weighing]);
  }

  /** The ratings to train on: weights by age with a half-life, if `weighed` has found them. */
  selected(dataset: Dataset): LogicalPlan {
    if (this.weighing === undefined) return this.given(dataset);
    const { iso: _, ...by } = this.weighing;
    const weighing = { ...by, keepsTimes: this.onDuplicates === 'last' };
    return andThen(dataset.plan, new SelectRatings(this.columnsOf(dataset), this.onBadRows, weighing));
  }

  /** The ratings as they are given. */
  given(dataset: Dataset): LogicalPlan {
    const { user, item, rating, timestamp } = this.columnsOf(dataset);
    const columns = this.#needsTimes ? { user, item, rating, timestamp } : { user, item, rating };
    return andThen(dataset.plan, new SelectRatings(columns, this.onBadRows));
  }

  /** The steps that give the ratings, as plans print them: "parquet-source > select-ratings". */
  describe({ plan }: Dataset): string {
    return [
      rootSource(plan).name,
      ...operatorsOf(plan).map((operator) => operator.name),
      'select-ratings',
      ...(this.weighing === undefined ? [] : ['weights by age']),
    ].join(' > ');
  }

  /** Checks that the ratings have their columns, with usable types. Throws DataError. */
  async checkColumns(dataset: Dataset, signal: AbortSignal): Promise<void> {
    using _ = dataset.session.beginPhase('open files');
    await schemaOf(this.selected(dataset), undefined, signal);
  }

  /**
   * Reads the ratings and numbers their users and items. The id types of the validation set are checked
   * first, so that an error comes before the long work. `inBands`: allows more ratings than one block holds,
   * within the memory budget.
   */
  async index(
    ratings: Dataset,
    validation: Dataset | undefined,
    ctx: ExecutionContext,
    { inParts = false, inBands = false }: IndexingOptions & { readonly inBands?: boolean } = {},
  ): Promise<IndexedRatings> {
    const { ids, timestamps } = await this.#types(ratings, ctx.signal);
    const within = rowsWithin(ratings.session, ids, timestamps);
    if (validation) await this.#checkIdTypes(ratings, validation, ctx.signal);
    const totalRows = await knownRows(ratings.plan, ctx);
    if (totalRows !== undefined && !inParts && this.onBadRows === 'error')
      requireRows(totalRows, ids, ratings.session);
    // If the number of rows is known, checks already before reading that the spill folder has room; else this
    // is checked before sorting.
    if (totalRows !== undefined && inParts) await requireSpill(totalRows, within.loaded, ctx);
    if (this.onDuplicates === 'last' && this.weighing === undefined && rootSource(ratings.plan).replayable)
      await this.#reportTimes(ratings, ctx);
    const inBlock = inBands ? within.maximum : Math.min(within.maximum, blockLimit.ratings);
    const indexed = await readRatings(
      this.selected(ratings),
      {
        maximumRows: inParts ? Number.MAX_SAFE_INTEGER : inBlock,
        rowsInMemory: within.loaded,
        totalRows,
        splitBytes: ratings.session.splitBytes,
      },
      ctx,
    );
    // Throws for an id that the session's option `ids` cannot represent; now, not after the training.
    idValues(indexed.users, ratings.session.ids, 'user');
    idValues(indexed.items, ratings.session.ids, 'item');
    return indexed;
  }

  /**
   * Reports the unit of the times, by which the last of several ratings is chosen; warns if there seem to be
   * two units.
   */
  async #reportTimes(ratings: Dataset, ctx: ExecutionContext): Promise<void> {
    const sizes = await runInto(ratings.plan, countTimeSizes(this.columnsOf(ratings).timestamp), ctx);
    sizes.report(ctx);
  }

  /** Bytes that the process needs at least to read this number of ratings. */
  async loadingNeed(
    ratings: Dataset,
    rows: number,
    signal: AbortSignal,
    { inParts = false }: IndexingOptions = {},
  ): Promise<number> {
    return loadingNeed(rows, inParts, ratings.session.workers, (await this.#types(ratings, signal)).ids);
  }

  /**
   * Finds `ids`, the larger type of the two id columns in memory, and `timestamps`, true if ratings have
   * times.
   */
  async #types(
    ratings: Dataset,
    signal: AbortSignal,
  ): Promise<{ readonly ids: KeyType; readonly timestamps: boolean }> {
    const { users, items, timestamps } = typesOf(await schemaOf(this.selected(ratings), undefined, signal));
    return {
      ids: (['utf8', 'int64'] as const).find((type) => users === type || items === type) ?? 'int32',
      timestamps,
    };
  }

  /** Reads the pairs of a validation set. */
  async readPairs(dataset: Dataset, ctx: ExecutionContext): Promise<ReadPairs> {
    return readPairs(this.#selectedPairs(dataset), dataset.session.splitBytes, ctx);
  }

  /** Number of rows of a validation set, without bad rows that are skipped. */
  async countPairs(dataset: Dataset): Promise<number> {
    const { user, item, rating } = this.columnsOf(dataset);
    return (
      this.onBadRows === 'skip' ? dataset.pipe(new SelectRatings({ user, item, rating }, 'skip')) : dataset
    ).count();
  }

  /** The validation set, whose times are not used. */
  #selectedPairs(dataset: Dataset): LogicalPlan {
    const { user, item, rating } = this.columnsOf(dataset);
    return andThen(dataset.plan, new SelectRatings({ user, item, rating }, this.onBadRows));
  }

  async #checkIdTypes(ratings: Dataset, validation: Dataset, signal: AbortSignal): Promise<void> {
    const [train, test] = await Promise.all(
      [this.selected(ratings), this.#selectedPairs(validation)].map((plan) =>
        schemaOf(plan, undefined, signal),
      ),
    );
    const { user, item } = this.columnsOf(ratings);
    for (const [i, column] of [user, item].entries()) {
      const [own, other] = [train.fields[i].type, test.fields[i].type];
      if (DataType.isUtf8(own) === DataType.isUtf8(other)) continue;
      // An empty text file has no column types that could differ.
      if (rootSource(validation.plan).replayable && (await validation.count()) === 0) return;
      throw new DataError(`ids are ${own} in the training set, but ${other} in the validation set`, {
        phase: 'read',
        column,
      });
    }
  }
}

/** The weights of a training set, with the time of whole weights as ISO text. */
export type FoundWeighing = Weighing & { readonly iso: string };

/** Throws CapacityError if the spill folder has no room for the rows that do not fit into memory. */
async function requireSpill(rows: number, inMemory: number, { executor }: ExecutionContext): Promise<void> {
  if (rows > inMemory) await executor.spilled?.requireRoom(spilledBytes(rows));
}

/** Number of rows of the source, if its metadata contain it and no operator changes it. */
async function knownRows(plan: LogicalPlan, ctx: ExecutionContext): Promise<number | undefined> {
  return operatorsOf(plan).length > 0 ? undefined : (await rootSource(plan).statistics?.(ctx))?.rows;
}

/** The rating options of every trainer, in addition to its parameters. */
export interface RatingOptions {
  /**
   * Column of user ids: integers or text. Default: the data set's name, which must agree, else 'user', else
   * one such as userId.
   */
  readonly userCol?: string;
  /**
   * Column of item ids: integers or text. Default: the data set's name, which must agree, else 'item', else
   * one such as movie_id.
   */
  readonly itemCol?: string;
  /**
   * Column of ratings: numbers, any unit. Default: the data set's name, which must agree, else 'rating', else
   * one such as stars.
   */
  readonly ratingCol?: string;
  /**
   * Column of times, for `halfLife` of ALS and for onDuplicates 'last'. Default: the data set's name, else
   * 'timestamp', else one such as ts or date.
   */
  readonly timestampCol?: string;
  /** Predictions for unknown users and items: 'nan', or 'drop' to leave their rows out. Default 'nan'. */
  readonly coldStartStrategy?: ColdStart;
  /**
   * Several ratings of one pair: 'keep' all, 'error', the 'last' by timestamp, their 'mean' or 'sum'. Default
   * 'keep'.
   */
  readonly onDuplicates?: DuplicatePolicy;
  /**
   * Rows with null, NaN or infinite values: 'error' ends the run, 'skip' leaves them out and counts them.
   * Default 'error'.
   */
  readonly onBadRows?: BadRowPolicy;
}

export const ratingOptionNames = [
  'userCol',
  'itemCol',
  'ratingCol',
  'timestampCol',
  'coldStartStrategy',
  'onDuplicates',
  'onBadRows',
] as const satisfies readonly (keyof RatingOptions)[];
