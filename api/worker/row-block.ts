import type { RecordBatch, Schema } from 'apache-arrow';
import { frameRows } from '../../connectors/model/factor-frames.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type KeyColumn, keyCount, keyText, takeKeys, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { dataSetName, sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { SizedAlsParams } from '../../operators/als/als-params.ts';
import { unitOfSize } from '../../operators/als/rating-unit.ts';
import { columnsByOwner, EquationShares } from '../../operators/als/rows/equation-shares.ts';
import { RowSolver } from '../../operators/als/rows/row-solver.ts';
import { MOST_CANCELLED } from '../../operators/als/solved-loss.ts';
import type { IndexedRatings } from '../../operators/ratings/ids/number-ids.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../operators/ratings/ratings.ts';
import { sortByUser } from '../../operators/ratings/sort-ratings.ts';
import { equationColumns, equationLayout } from '../../operators/tasks/equation-tasks.ts';
import { RatingInput } from '../rating-input.ts';
import type { Session } from '../session.ts';
import { ArrivingRows, BatchChannel, type FactorRows } from './arriving-rows.ts';
import {
  type BlockBytes,
  type BlockFacts,
  factsOfBlock,
  formsEquations,
  type RatingSums,
  type Side,
} from './block-facts.ts';
import type { RowTraining } from './opening.ts';
import { blocksOfIds, mostOrAll, outRows } from './out-rows.ts';
import { whole } from './requests.ts';

interface Built {
  readonly keys: KeyColumn;
  /** The ids of the other side (items for a block of users) that occur in the block. */
  readonly columns: KeyColumn;
  readonly lookup: KeyLookup;
  readonly block: RatingBlock;
  /**
   * The block of the other side to which each column belongs, and for each of these blocks the rows that it
   * needs; undefined if `build` named no blocks. Rows are undefined if the block is sent all of them.
   */
  readonly owners: Uint32Array | undefined;
  readonly out: readonly (Uint32Array | undefined)[] | undefined;
}

/**
 * The ratings of some users, or of some items, that one worker holds. They are numbered as they arrive;
 * `build` sorts them, and then their rows can be solved.
 */
export class RowBlock {
  readonly side: Side;
  ratings = 0;
  /** By the model; undefined before the block is built. */
  bytes: BlockBytes | undefined;
  readonly #params: SizedAlsParams;
  readonly #isHalf: boolean;
  readonly #ctx: ExecutionContext;
  readonly #channel: BatchChannel;
  readonly #indexed: Promise<IndexedRatings>;
  #built: Built | undefined;
  #solver: RowSolver | undefined;
  #unit: number | undefined;
  #shares: EquationShares | undefined;
  #sums: EquationSums | undefined;
  /** A version of which some rows have not arrived yet. */
  #previous: { readonly arrived: ArrivingRows; readonly all: Float32Array } | undefined;

  constructor(
    side: Side,
    schema: Schema,
    { columns, params, exchange }: RowTraining,
    session: Session,
    ctx: ExecutionContext,
  ) {
    this.side = side;
    this.#params = params;
    this.#isHalf = exchange === 'float16';
    this.#ctx = ctx;
    this.#channel = new BatchChannel();
    // A block has its own side as rows; for a block of items, items are read into the column of users.
    const [row, column] = side === 'users' ? [columns.user, columns.item] : [columns.item, columns.user];
    const input = new RatingInput({ userCol: row, itemCol: column, ratingCol: columns.rating });
    this.#indexed = input.index(session.from(this.#channel.batches(), schema), undefined, ctx);
    this.#indexed.catch((error: unknown) => this.#channel.fail(error));
  }

  get version(): number | undefined {
    return this.#solver?.version;
  }

  /** True if the block's ratings are held by column too, for shares of equations. */
  get hasShares(): boolean {
    return this.#shares !== undefined;
  }

  async load(batches: AsyncIterable<RecordBatch>): Promise<void> {
    if (this.#built !== undefined)
      throw new UsageError('this block is built already', { phase: 'load', advice: 'Release it first' });
    for await (const batch of batches) {
      await this.#channel.push(batch);
      this.ratings += batch.numRows;
    }
  }

  /**
   * Sorts the ratings into rows. `blocks`: the number of blocks of the other side, to which rows can be sent
   * then. A block that needs more than the share `most` of the rows is sent all of them. Throws DataError if
   * the number of ratings differs.
   */
  async build(rows: number, blocks?: number, most = 1): Promise<BlockFacts> {
    if (rows !== this.ratings)
      throw new DataError(
        `${formatCount(this.ratings)} ratings arrived, but the block should have ${formatCount(rows)}`,
        { phase: 'load', file: 'the feed', advice: 'Send them again' },
      );
    const { keys, columns, block } = rows === 0 ? this.#empty() : await this.#sorted();
    const owners = blocks === undefined ? undefined : blocksOfIds(columns, blocks);
    const out =
      owners && outRows(block, owners, blocks ?? 0).map((rows) => mostOrAll(rows, block.rows, most));
    this.#built = { keys, columns, lookup: new KeyLookup(columns), block, owners, out };
    const facts = factsOfBlock(
      { block, columns: keyCount(columns), blocks, out },
      { ...this.#params, isHalf: this.#isHalf },
      formsEquations(this.#ctx, this.#params.rank),
    );
    this.bytes = facts.bytes;
    return facts;
  }

  async #sorted(): Promise<Pick<Built, 'keys' | 'columns' | 'block'>> {
    await this.#channel.end();
    const indexed = await this.#indexed;
    const block = await sortByUser(indexed, 'keep', this.#ctx);
    return { keys: indexed.users, columns: indexed.items, block };
  }

  /** A block of a worker that got no ratings of this side. */
  #empty(): Pick<Built, 'keys' | 'columns' | 'block'> {
    this.#channel.fail(new Error('the block is empty'));
    const keys: KeyColumn = { type: 'int32', values: new Int32Array(0) };
    const block = blockOf(
      { name: dataSetName('empty'), partition: 0, version: 0 },
      emptyBlock(new Int32Array(0)),
    );
    return { keys, columns: keys, block };
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

  /** Finds the rows of the fixed side that the block needs. */
  get columns(): KeyLookup {
    return this.#require().lookup;
  }

  /**
   * The rows that are sent to a block of the other side, ascending; undefined for all. Throws UsageError if
   * there is no such block.
   */
  outTo(block: number): Uint32Array | undefined {
    return this.#outgoing(block).out[block];
  }

  /**
   * The columns of a block of the other side, some at a time, with the share of this block's ratings in their
   * equations. The block must have a version.
   */
  async *sharesTo(to: number): AsyncGenerator<{ readonly ids: KeyColumn; readonly equations: Float32Array }> {
    const { out, owners } = this.#outgoing(to);
    const solver = this.#solver;
    if (solver?.version === undefined) throw new Error('the block has no version');
    if (solver.block.rows === 0) return;
    this.#shares ??= new EquationShares(
      columnsByOwner(solver.block, owners, out.length),
      this.#params,
      this.#ctx,
    );
    await this.#shares.place(solver.version, solver.rows);
    const width = equationColumns(this.#params.rank, false);
    for await (const { columns, equations } of this.#shares.form(to, frameRows(width)))
      yield { ids: takeKeys(this.#require().columns, columns), equations };
  }

  /** Frees the device's memory in which this block's rows are for `sharesTo`. */
  async endShares(): Promise<void> {
    await this.#shares?.rest();
  }

  /** Adds a share in the equations of this block's rows from a version of the fixed side. */
  addShare(version: number, share: FactorRows): void {
    const { keys, block } = this.#require();
    if (this.#sums?.version !== version)
      this.#sums = new EquationSums(version, new KeyLookup(keys), block.offsets, this.#params.rank);
    this.#sums.add(share);
  }

  /** The version of the fixed side from which equations have arrived. */
  get summed(): number | undefined {
    return this.#sums?.version;
  }

  /** The sums of the equations, which the block gives up. Throws DataError if shares are missing. */
  takeSums(): Float32Array | undefined {
    const sums = this.#sums?.complete();
    this.#sums = undefined;
    return sums;
  }

  #outgoing(block: number): {
    readonly out: readonly (Uint32Array | undefined)[];
    readonly owners: Uint32Array;
  } {
    const { out, owners } = this.#require();
    if (out === undefined || owners === undefined)
      throw new UsageError('this block was built without the number of blocks of the other side', {
        phase: 'train',
        advice: 'Give build the field blocks',
      });
    if (block < out.length) return { out, owners };
    throw new UsageError(`there is no block ${block}: build named ${out.length}`, { phase: 'train' });
  }

  /** Throws DataError if rows of the fixed side that the block needs have not arrived. */
  requireFixed(missing: number): void {
    if (missing === 0) return;
    throw new DataError(
      `${formatCount(missing)} of the ${formatCount(keyCount(this.#require().columns))} rows of the fixed side that the block needs did not come`,
      { phase: 'train', file: 'the feed', advice: 'Send all of them' },
    );
  }

  /**
   * Adds rows of an earlier version of this block, in the unit of training. Once all of its rows have
   * arrived, they are the solver's current factors.
   */
  addPrevious(version: number, solver: RowSolver, { ids, factors }: FactorRows): void {
    const { rank } = this.#params;
    if (this.#previous?.arrived.version !== version)
      this.#previous = {
        arrived: new ArrivingRows(version, new KeyLookup(this.keys)),
        all: new Float32Array(keyCount(this.keys) * rank),
      };
    const { arrived, all } = this.#previous;
    const positions = arrived.add(ids);
    if (positions.includes(UNKNOWN_KEY))
      throw new DataError(
        `a frame of ${formatCount(positions.length)} previous rows has rows that the block does not have`,
        { phase: 'train', file: 'the feed' },
      );
    positions.forEach((position, row) =>
      all.set(factors.subarray(row * rank, (row + 1) * rank), position * rank),
    );
    if (arrived.missing > 0) return;
    this.#previous = undefined;
    solver.give(version, all);
  }

  /** Gives up the block's rows, which the parent can send again. */
  async giveUpRows(): Promise<void> {
    this.#previous = undefined;
    await this.endShares();
    this.#solver?.giveUp();
  }

  async forget(): Promise<void> {
    if (this.#built === undefined) this.#channel.fail(new Error('the block was released'));
    await this.endShares();
    await this.#solver?.forget();
  }

  #require(): Built {
    if (this.#built === undefined)
      throw new UsageError('this block is not built', { phase: 'train', advice: 'Send build first' });
    return this.#built;
  }
}

/**
 * Largest ratio of Σ r² to Σ e² at which the error of users without fixed rows is computed from their solve: in
 * float32 about three digits are left.
 */
const MOST_WITHOUT_PASS = 1e4;

/**
 * The answer to the request `loss`: a block's part of the loss. Of users it includes the errors of their ratings,
 * by a pass over them, or with the field `solved` from the objective of their solve. `held`: the version of the
 * fixed rows that the worker has for the block.
 */
export async function lossOfBlock(
  block: RowBlock,
  held: number | undefined,
  fields: JsonObject,
): Promise<JsonObject> {
  const solver = block.started;
  if (solver === undefined || block.version !== whole(fields, 'version')) return { missing: 'version' };
  if (block.side === 'items') return { ...(await solver.loss(false)) };
  const isFixed = block.ratings === 0 || held === whole(fields, 'fixed');
  if (fields.solved === true) {
    const solved = await solver.solvedLoss(isFixed ? MOST_CANCELLED : MOST_WITHOUT_PASS);
    if (solved !== undefined) return solved;
  }
  return isFixed ? { ...(await solver.loss(true)) } : { missing: 'fixed' };
}

/** Above this number of ratings float32 cannot count each one. */
const COUNTED = 2 ** 24;

/**
 * The sums of a block's equations for one version of the fixed side, to which the shares of all blocks of that
 * side are added as they arrive: their order decides the last bits.
 */
class EquationSums {
  readonly version: number;
  readonly #lookup: KeyLookup;
  readonly #offsets: Int32Array;
  readonly #rank: number;
  readonly #values: Float32Array;

  /** `lookup` finds a block's rows; `offsets`: row pointers of their ratings. */
  constructor(version: number, lookup: KeyLookup, offsets: Int32Array, rank: number) {
    [this.version, this.#lookup, this.#offsets, this.#rank] = [version, lookup, offsets, rank];
    this.#values = sharedArray(Float32Array, (offsets.length - 1) * equationColumns(rank, false));
  }

  /** Adds a share. Throws DataError for rows that the block does not have. */
  add({ ids, factors: equations }: FactorRows): void {
    const columns = equationColumns(this.#rank, false);
    const positions = this.#lookup.positionsOf(ids);
    if (positions.includes(UNKNOWN_KEY))
      throw new DataError(
        `a frame of ${formatCount(positions.length)} equations has rows that the block does not have`,
        { phase: 'train', file: 'the feed' },
      );
    for (let row = 0; row < positions.length; row++) {
      const [to, from] = [positions[row] * columns, row * columns];
      for (let k = 0; k < columns; k++) this.#values[to + k] += equations[from + k];
    }
  }

  /** The sums. Throws DataError if a row's shares do not have exactly the ratings of the row. */
  complete(): Float32Array {
    const columns = equationColumns(this.#rank, false);
    const { n } = equationLayout(this.#rank);
    for (let row = 0; row < this.#offsets.length - 1; row++) {
      const ratings = this.#offsets[row + 1] - this.#offsets[row];
      const arrived = this.#values[row * columns + n];
      if (Math.abs(arrived - ratings) <= (ratings > COUNTED ? ratings / COUNTED : 0)) continue;
      throw new DataError(
        `the equations of the row ${keyText(this.#lookup.keys, row)} count ${formatCount(arrived)} of its ${formatCount(ratings)} ratings`,
        { phase: 'train', file: 'the feed', advice: 'Send the share of each block of the other side once' },
      );
    }
    return this.#values;
  }
}
