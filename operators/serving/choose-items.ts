import { type FoundIds, findIds, type Id } from '../../engine/keys/find-id.ts';
import { type KeyColumn, keyCount, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { dataSetName, partitionRef, sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { giveTo } from '../../engine/run/run-steps.ts';
import { blockOf, blockOfColumns, hostForm, type RatingBlock } from '../ratings/ratings.ts';
import { type FactorModel, lookupOf, withRows } from './factor-model.ts';

export interface ItemLists {
  /** `deny`: items that are never recommended. `allow`: the only items that may be recommended. */
  readonly deny?: readonly Id[];
  readonly allow?: readonly Id[];
  /** `exclude`: items without ratings, which attributes have added, are never recommended. Default include. */
  readonly coldItems?: 'include' | 'exclude';
}

/**
 * The positions of denied and allowed items in a model, and the number of ids that the model does not know.
 */
export interface ChosenItems {
  /** Ascending. */
  readonly denied: Uint32Array;
  readonly allowed: Uint32Array | undefined;
  readonly unknown: number;
}

/** `counts`: the number of ratings of each item. */
export function chooseItems(
  items: KeyColumn,
  { deny, allow, coldItems }: ItemLists,
  counts?: Uint32Array,
): ChosenItems {
  const none: FoundIds = { positions: new Uint32Array(0), unknown: 0 };
  const denied = deny === undefined ? none : findIds(items, deny);
  const allowed = allow === undefined ? undefined : findIds(items, allow);
  const cold = coldItems === 'exclude' && counts ? positionsWithout(counts) : none.positions;
  return {
    denied: mergeAscending(denied.positions, cold),
    allowed: allowed?.positions,
    unknown: denied.unknown + (allowed?.unknown ?? 0),
  };
}

const withoutRatings = new WeakMap<Uint32Array, Uint32Array>();

/** The positions of items without ratings; found once. */
function positionsWithout(counts: Uint32Array): Uint32Array {
  const found =
    withoutRatings.get(counts) ?? Uint32Array.from(counts.keys()).filter((at) => counts[at] === 0);
  withoutRatings.set(counts, found);
  return found;
}

/** 1 for each item that may be recommended; undefined if all may be. */
export function maskOf(items: number, { denied, allowed }: ChosenItems): Uint8Array | undefined {
  if (denied.length === 0 && allowed === undefined) return undefined;
  const mask = sharedArray(Uint8Array, items);
  if (allowed === undefined) mask.fill(1);
  else for (const item of allowed) mask[item] = 1;
  for (const item of denied) mask[item] = 0;
  return mask;
}

/** The positions of the items that may be recommended, ascending; undefined if all may be. */
export function chosenPositions(items: number, chosen: ChosenItems): Uint32Array | undefined {
  const mask = maskOf(items, chosen);
  return mask && Uint32Array.from({ length: items }, (_, item) => item).filter((item) => mask[item] === 1);
}

/** The model with only the items that may be recommended; the model itself if all may be. */
export function withChosenItems(model: FactorModel, chosen: ChosenItems): FactorModel {
  const positions = chosenPositions(keyCount(model.items), chosen);
  return positions === undefined ? model : withRows(model, 'items', positions);
}

/** Union of two ascending lists, ascending. */
export function mergeAscending(first: Uint32Array, second: Uint32Array): Uint32Array {
  if (second.length === 0) return first;
  if (first.length === 0) return second;
  const all = new Uint32Array(first.length + second.length);
  let [i, j, count] = [0, 0, 0];
  while (i < first.length || j < second.length) {
    const next = j >= second.length || (i < first.length && first[i] <= second[j]) ? first[i] : second[j];
    if (first[i] === next) i++;
    if (second[j] === next) j++;
    if (count === 0 || all[count - 1] !== next) all[count++] = next;
  }
  return all.subarray(0, count);
}

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

/** The pairs for a model that has all users and items for which they were read, and others. */
export function exclusionsOf(exclusions: Exclusions, model: FactorModel): Exclusions {
  const users = lookupOf(exclusions.users).positionsOf(model.users);
  const placeOf = lookupOf(model.items).positionsOf(exclusions.items);
  const offsets = new Int32Array(users.length + 1);
  const indices = new Uint32Array(exclusions.pairs);
  users.forEach((before, user) => {
    let end = offsets[user];
    if (before !== UNKNOWN_KEY) for (const item of exclusions.of(before)) indices[end++] = placeOf[item];
    offsets[user + 1] = end;
  });
  return new Exclusions(model, { offsets, indices }, exclusions.unknownPairs);
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
  const columns = { ...exclusions.rows(), values: sharedArray(Float32Array, 0) };
  const block = same
    ? blockOf(partitionRef(dataSetName('exclusions')), {
        layout: 'rating-block',
        rows: keyCount(model.users),
        columns,
      })
    : chosenPairs(exclusions, model);
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[block.ref, hostForm(block)]]);
  return block;
}

/** The pairs of the users and items that a model with fewer of them has, by its positions. */
function chosenPairs(exclusions: Exclusions, model: FactorModel): RatingBlock {
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
  return blockOfColumns('exclusions', columns);
}
