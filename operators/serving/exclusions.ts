import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { UNKNOWN_KEY } from '../../engine/keys/tables/key-table.ts';
import { dataSetName, type Partition, partitionRef, sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../ratings/rating-block.ts';
import { type FactorModel, lookupOf } from './factor-model.ts';

/**
 * Pairs that must not be recommended, in memory. They are stored by the positions of users and items in the
 * model for which they were read, and used for any number of requests.
 */
export class Exclusions {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /**
   * Number of pairs that are excluded, and of pairs that were dropped since the model does not know their
   * user or item.
   */
  readonly pairs: number;
  readonly unknownPairs: number;
  readonly #offsets: Int32Array;
  readonly #items: Uint32Array;

  /** `offsets` and `indices`: items of each user, ascending, in compressed rows. */
  constructor(
    { users, items }: FactorModel,
    { offsets, indices }: { readonly offsets: Int32Array; readonly indices: Uint32Array },
    unknownPairs: number,
  ) {
    this.users = users;
    this.items = items;
    this.pairs = indices.length;
    this.unknownPairs = unknownPairs;
    this.#offsets = offsets;
    this.#items = indices;
  }

  /** All pairs in compressed rows by position: items of each user, ascending. Views. */
  rows(): { readonly offsets: Int32Array; readonly indices: Uint32Array } {
    return { offsets: this.#offsets, indices: this.#items };
  }

  /** Positions of a user's items, ascending. A view. */
  of(user: number): Uint32Array {
    return this.#items.subarray(this.#offsets[user], this.#offsets[user + 1]);
  }
}

/**
 * The pairs as a block over the users and items of a model. It may be another model than the one for which
 * they were read, if its ids are among that model's, with items in the same order.
 */
export async function blockOfExclusions(
  exclusions: Exclusions,
  model: FactorModel,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const same = exclusions.users === model.users && exclusions.items === model.items;
  const partition: Partition = same
    ? {
        layout: 'rating-block',
        rows: keyCount(model.users),
        columns: { ...exclusions.rows(), values: sharedArray(Float32Array, 0) },
      }
    : chosenPairs(exclusions, model);
  const block = blockOf(partitionRef(dataSetName('exclusions')), partition);
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[block.ref, partition]]);
  return block;
}

/** The pairs of the users and items that a model with fewer of them has, by its positions. */
function chosenPairs(exclusions: Exclusions, model: FactorModel): Partition {
  const users = lookupOf(exclusions.users).positionsOf(model.users);
  const columnOf = new Uint32Array(keyCount(exclusions.items)).fill(UNKNOWN_KEY);
  lookupOf(exclusions.items)
    .positionsOf(model.items)
    .forEach((item, column) => (columnOf[item] = column));
  const columns = Array.from(users, (user) =>
    exclusions
      .of(user)
      .map((item) => columnOf[item])
      .filter((column) => column !== UNKNOWN_KEY),
  );
  const partition = emptyBlock(Int32Array.from(columns, ({ length }) => length));
  const { offsets, indices } = partition.columns as { offsets: Int32Array; indices: Uint32Array };
  columns.forEach((own, row) => indices.set(own, offsets[row]));
  return partition;
}
