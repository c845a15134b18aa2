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
import { typesOf } from '../operators/ratings/reading/rating-chunk.ts';
import { readRatings } from '../operators/ratings/reading/read-ratings.ts';
import { type ColumnNames, usualNames } from '../operators/ratings/rows/column-names.ts';
import { type BadRowPolicy, SelectRatings } from '../operators/ratings/rows/select-ratings.ts';
import type { ColdStart } from '../operators/serving/predict.ts';
import { countTimeSizes } from '../operators/splits/time-split.ts';
import type { DuplicatePolicy } from '../operators/tasks/tasks.ts';
import type { Dataset } from './dataset.ts';
import { definedNames, withFoundColumns } from './found-columns.ts';
import { keptAs } from './training/kept-ratings.ts';

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

  /**
   * `preferred`: the columns of a model, used if the data have them. Throws UsageError naming an option that
   * is out of range or has no effect.
   */
  constructor(
    { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows }: RatingOptions,
    preferred?: Pick<ColumnNames, 'user' | 'item' | 'rating'>,
  ) {
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
    if (timestampCol !== undefined && this.onDuplicates !== 'last')
      throw new UsageError("timestampCol acts only with onDuplicates 'last'");
  }

  /**
   * The data set with the names of its columns, which the other methods need. Throws the errors of
   * withFoundColumns.
   */
  async found(dataset: Dataset, ctx: Pick<ExecutionContext, 'events' | 'signal'>): Promise<Dataset> {
    const roles =
      this.onDuplicates === 'last'
        ? (['user', 'item', 'rating', 'timestamp'] as const)
        : (['user', 'item', 'rating'] as const);
    return keptAs(
      await withFoundColumns(dataset, { roles, given: this.#given, preferred: this.#preferred }, ctx),
      dataset,
    );
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
    return JSON.stringify([this.columnsOf(dataset), this.onDuplicates, this.onBadRows]);
  }

  /** The ratings to train on. */
  selected(dataset: Dataset): LogicalPlan {
    const { user, item, rating, timestamp } = this.columnsOf(dataset);
    const columns = this.onDuplicates === 'last' ? { user, item, rating, timestamp } : { user, item, rating };
    return andThen(dataset.plan, new SelectRatings(columns, this.onBadRows));
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
    if (this.onDuplicates === 'last' && rootSource(ratings.plan).replayable)
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

/** The steps that give the ratings, as plans print them: "parquet-source > select-ratings". */
export function describeInput(plan: LogicalPlan): string {
  return [
    rootSource(plan).name,
    ...operatorsOf(plan).map((operator) => operator.name),
    'select-ratings',
  ].join(' > ');
}

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
   * Column of times, for onDuplicates 'last' only. Default: the data set's name, else 'timestamp', else one
   * such as ts or date.
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
