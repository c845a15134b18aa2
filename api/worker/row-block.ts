import type { RecordBatch, Schema } from 'apache-arrow';
import { DataError, UsageError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { UNKNOWN_KEY } from '../../engine/keys/tables/key-table.ts';
import { dataSetName, sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { SizedAlsParams } from '../../operators/als/implicit/sized-params.ts';
import { unitOfSize } from '../../operators/als/rating-unit.ts';
import { RowSolver } from '../../operators/als/rows/row-solver.ts';
import { sortByUser } from '../../operators/ratings/sort-ratings.ts';
import type { IndexedRatings } from '../../operators/ratings/ids/index-ids.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../operators/ratings/rating-block.ts';
import { RatingInput } from '../rating-input.ts';
import type { Session } from '../session.ts';
import { BatchChannel } from './batch-channel.ts';
import type { Opening } from './opening.ts';
import { PreviousRows } from './previous-rows.ts';

export type Side = 'users' | 'items';

/** Sums over the ratings of all workers, from which the unit of training is computed. */
export interface RatingSums {
  readonly ratings: number;
  readonly squares: number;
}

interface Built {
  readonly keys: KeyColumn;
  /** The ids of the other side (items for a block of users) that occur in the block. */
  readonly columns: KeyColumn;
  readonly lookup: KeyLookup;
  readonly block: RatingBlock;
}

/**
 * The ratings of some users, or of some items, that one worker holds. They are numbered as they arrive;
 * `build` sorts them, and then their rows can be solved.
 */
export class RowBlock {
  readonly side: Side;
  readonly #params: SizedAlsParams;
  readonly #ctx: ExecutionContext;
  readonly #channel: BatchChannel;
  readonly #indexed: Promise<IndexedRatings>;
  #rows = 0;
  #built: Built | undefined;
  #solver: RowSolver | undefined;
  #fixedVersion: number | undefined;
  #unit: number | undefined;
  /** A version of which some rows have not arrived yet. */
  #previous: PreviousRows | undefined;

  constructor(
    side: Side,
    schema: Schema,
    { columns, params }: { readonly columns: Opening['columns']; readonly params: SizedAlsParams },
    session: Session,
    ctx: ExecutionContext,
  ) {
    this.side = side;
    this.#params = params;
    this.#ctx = ctx;
    this.#channel = new BatchChannel();
    // A block has its own side as rows; for a block of items, items are read into the column of users.
    const [row, column] = side === 'users' ? [columns.user, columns.item] : [columns.item, columns.user];
    const input = new RatingInput({ userCol: row, itemCol: column, ratingCol: columns.rating });
    this.#indexed = input.index(session.from(this.#channel.batches(), schema), undefined, ctx);
    this.#indexed.catch((error: unknown) => this.#channel.fail(error));
  }

  get ratings(): number {
    return this.#rows;
  }

  get version(): number | undefined {
    return this.#solver?.version;
  }

  get fixedVersion(): number | undefined {
    return this.#fixedVersion;
  }

  get isBuilt(): boolean {
    return this.#built !== undefined;
  }

  async load(batches: AsyncIterable<RecordBatch>): Promise<void> {
    if (this.#built !== undefined)
      throw new UsageError('this block is built already', { phase: 'load', advice: 'Release it first' });
    for await (const batch of batches) {
      await this.#channel.push(batch);
      this.#rows += batch.numRows;
    }
  }

  /** Sorts the ratings into rows. Throws DataError if the number of ratings differs. */
  async build(rows: number): Promise<{
    readonly rows: number;
    readonly columns: number;
    readonly ratings: number;
    readonly sum: number;
    readonly squares: number;
  }> {
    if (rows !== this.#rows)
      throw new DataError(
        `${formatCount(this.#rows)} ratings arrived, but the block should have ${formatCount(rows)}`,
        { phase: 'load', file: 'the feed', advice: 'Send them again' },
      );
    if (rows === 0) return this.#buildEmpty();
    await this.#channel.end();
    const indexed = await this.#indexed;
    const block = await sortByUser(indexed, 'keep', this.#ctx);
    this.#built = {
      keys: indexed.users,
      columns: indexed.items,
      lookup: new KeyLookup(indexed.items),
      block,
    };
    let [sum, squares] = [0, 0];
    for (let k = 0; k < block.values.length; k++) {
      sum += block.values[k];
      squares += block.values[k] ** 2;
    }
    return { rows: block.rows, columns: keyCount(indexed.items), ratings: block.ratings, sum, squares };
  }

  /** A block of a worker that got no ratings of this side. */
  #buildEmpty() {
    this.#channel.fail(new Error('the block is empty'));
    const keys: KeyColumn = { type: 'int32', values: new Int32Array(0) };
    const columns = emptyBlock(new Int32Array(0));
    this.#built = {
      keys,
      columns: keys,
      lookup: new KeyLookup(keys),
      block: blockOf({ name: dataSetName('empty'), partition: 0, version: 0 }, columns),
    };
    return { rows: 0, columns: 0, ratings: 0, sum: 0, squares: 0 };
  }

  /** The solver of the block's rows. The unit of the ratings is computed from the sums of the first call. */
  async solver({ ratings, squares }: RatingSums): Promise<RowSolver> {
    const { keys, columns, block } = this.#require();
    const unit = unitOfSize(Math.sqrt(squares / ratings));
    if (this.#solver !== undefined && this.#unit !== unit)
      throw new UsageError('squares and ratings differ from the earlier requests', { phase: 'train' });
    if (this.#solver === undefined) {
      this.#unit = unit;
      this.#solver = new RowSolver(
        block,
        { keys, columns: keyCount(columns), unit },
        this.#params,
        this.#ctx,
      );
      await this.#solver.place();
    }
    return this.#solver;
  }

  /** The solver, if the block has been solved or started before. */
  get started(): RowSolver | undefined {
    return this.#solver;
  }

  get keys(): KeyColumn {
    return this.#require().keys;
  }

  /**
   * Gives the solver the factors of the fixed side (items for a block of users) that occur in the block's
   * ratings. Throws DataError if one is missing.
   */
  fix(fixed: FixedSide, solver: RowSolver): void {
    if (this.#fixedVersion === fixed.version) return;
    const { columns } = this.#require();
    const { rank } = this.#params;
    const factors = sharedArray(Float32Array, keyCount(columns) * rank);
    const known = new Uint8Array(keyCount(columns));
    for (const { ids, factors: rows } of fixed.frames) {
      const positions = this.#require().lookup.positionsOf(ids);
      for (let row = 0; row < positions.length; row++) {
        if (positions[row] === UNKNOWN_KEY) continue;
        known[positions[row]] = 1;
        factors.set(rows.subarray(row * rank, (row + 1) * rank), positions[row] * rank);
      }
    }
    const missing = known.reduce((sum, one) => sum + 1 - one, 0);
    if (missing > 0)
      throw new DataError(
        `${formatCount(missing)} of the ${formatCount(known.length)} rows of the fixed side that the block needs did not come`,
        { phase: 'train', file: 'the feed', advice: 'Send all of them' },
      );
    solver.fix(factors);
    this.#fixedVersion = fixed.version;
  }

  /**
   * Adds rows of an earlier version of this block. Once all of its rows have arrived, they are the solver's
   * current factors.
   */
  async addPrevious(
    version: number,
    sums: RatingSums,
    { ids, factors }: { readonly ids: KeyColumn; readonly factors: Float32Array },
  ): Promise<void> {
    if (this.#previous?.version !== version)
      this.#previous = new PreviousRows(version, this.keys, this.#params.rank);
    this.#previous.add(ids, factors);
    const { whole } = this.#previous;
    if (whole === undefined) return;
    this.#previous = undefined;
    (await this.solver(sums)).give(version, whole);
  }

  async forget(): Promise<void> {
    if (this.#built === undefined) this.#channel.fail(new Error('the block was released'));
    await this.#solver?.forget();
  }

  #require(): Built {
    if (this.#built === undefined)
      throw new UsageError('this block is not built', { phase: 'train', advice: 'Send build first' });
    return this.#built;
  }
}

/** Factors of the fixed side, as frames that were received from the parent. */
export interface FixedSide {
  readonly version: number;
  readonly frames: { readonly ids: KeyColumn; readonly factors: Float32Array }[];
}
