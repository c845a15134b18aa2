import { hostDevice } from '../../engine/run/devices.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { UNKNOWN_KEY } from '../../engine/keys/key-table.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName } from '../../engine/partition.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../ratings/rating-block.ts';
import { type FactorModel, lookupOf } from './factor-model.ts';

/**
 * Pairs that are not recommended, in memory, by the positions of the users and items that they were made for: read once, and used
 * for any number of requests.
 */
export class Exclusions {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** Pairs whose user and item are known, and pairs that were left out since one of them is not. */
  readonly pairs: number;
  readonly unknownPairs: number;
  readonly #offsets: Int32Array;
  readonly #items: Uint32Array;

  /** `offsets` and `indices`: the items of each user, ascending, in compressed rows. */
  constructor({ users, items }: FactorModel, { offsets, indices }: { readonly offsets: Int32Array; readonly indices: Uint32Array }, unknownPairs: number) {
    this.users = users;
    this.items = items;
    this.pairs = indices.length;
    this.unknownPairs = unknownPairs;
    this.#offsets = offsets;
    this.#items = indices;
  }

  /** The items of a user, by ascending position; a view. */
  of(user: number): Uint32Array {
    return this.#items.subarray(this.#offsets[user], this.#offsets[user + 1]);
  }
}

/** A block over the users and items of another model, whose ids are among those of the exclusions in any order. */
export async function blockOfExclusions(exclusions: Exclusions, model: FactorModel, ctx: ExecutionContext): Promise<RatingBlock> {
  const users = lookupOf(exclusions.users).positionsOf(model.users);
  const columnOf = new Uint32Array(keyCount(exclusions.items)).fill(UNKNOWN_KEY);
  lookupOf(exclusions.items).positionsOf(model.items).forEach((item, column) => (columnOf[item] = column));
  const columns: Uint32Array[] = [];
  const lengths = new Int32Array(users.length);
  users.forEach((user, row) => {
    const own = exclusions.of(user).map((item) => columnOf[item]).filter((column) => column !== UNKNOWN_KEY);
    columns.push(own.sort());
    lengths[row] = own.length;
  });
  const partition = emptyBlock(lengths);
  const block = blockOf({ name: dataSetName('exclusions'), partition: 0, version: 0 }, partition);
  columns.forEach((own, row) => block.indices.set(own, block.offsets[row]));
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[block.ref, partition]]);
  return block;
}
