import { CapacityError } from '../../engine/errors.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { dataSetName, type PartitionRef, partitionRef, sharedArray } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice, hostDevice } from '../../engine/run/devices.ts';
import { giveTo } from '../../engine/run/run-steps.ts';

/** Result of training, as prediction needs it. Factors are row-major without padding; ids ascend. */
export interface FactorModel {
  /** Numbers of each row: the requested rank, or two more with biases. */
  readonly rank: number;
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** X: m x rank. */
  readonly userFactors: Float32Array;
  /** Θ: n x rank. */
  readonly itemFactors: Float32Array;
}

const lookups = new WeakMap<KeyColumn, KeyLookup>();

/** Lookup of positions in a column of ids; made on first use and then reused. */
export function lookupOf(ids: KeyColumn): KeyLookup {
  let lookup = lookups.get(ids);
  if (lookup === undefined) {
    lookup = new KeyLookup(ids);
    lookups.set(ids, lookup);
  }
  return lookup;
}

/** Names of the user and item factors in a device's memory. */
export interface PlacedFactors {
  readonly users: PartitionRef;
  readonly items: PartitionRef;
}

/** User and item factors, placed for scoring single (user, item) pairs. */
export interface PairFactors extends PlacedFactors {
  readonly at: Place;
}

/**
 * Copies the factors to the device that scores single (user, item) pairs. If its memory cannot hold them, the
 * CPU's threads score the pairs from the factors in host memory.
 */
export async function placeForPairs(model: FactorModel, ctx: ExecutionContext): Promise<PairFactors> {
  const at = computeDevice(ctx.executor).info.place;
  try {
    return { ...(await placeFactors(model, at, ctx)), at };
  } catch (error) {
    if (!(error instanceof CapacityError)) throw error;
    const host = hostDevice(ctx.executor).info.place;
    return { ...(await placeFactors(model, host, ctx, ['users', 'items'], 'factor-rows')), at: host };
  }
}

/**
 * Copies the user and item factors, or one of them, to a device's memory, where they stay while the holdings
 * of `ctx` are open. Throws CapacityError if they don't fit.
 */
export async function placeFactors(
  model: FactorModel,
  at: Place,
  ctx: ExecutionContext,
  sides: readonly ('users' | 'items')[] = ['users', 'items'],
  layout: 'factors' | 'factor-rows' = 'factors',
): Promise<PlacedFactors> {
  const name = dataSetName('model');
  const ref = (side: string) => partitionRef(`${name}/${side}`);
  const refs = { users: ref('users'), items: ref('items') };
  const values = { users: model.userFactors, items: model.itemFactors };
  await giveTo(
    ctx,
    at,
    sides.map((side) => [
      refs[side],
      { layout, rows: keyCount(model[side]), columns: { values: values[side] } },
    ]),
  );
  return refs;
}

/** The model with users and items exchanged. */
export function swappedModel(model: FactorModel): FactorModel {
  return {
    rank: model.rank,
    users: model.items,
    items: model.users,
    get userFactors() {
      return model.itemFactors;
    },
    get itemFactors() {
      return model.userFactors;
    },
  };
}

/** The factors of a model's items, for work that needs a few rows of them. */
export interface ItemRows {
  /** Numbers of a row, with biases. */
  readonly rank: number;
  readonly items: number;
  /** `count` numbers of the rows at these positions, in their order, from number `first` of a row on. */
  read(
    positions: Uint32Array,
    columns: { readonly first: number; readonly count: number },
    signal: AbortSignal,
  ): Promise<Float32Array>;
}

/** The rows of factors in memory. */
export function rowsInMemory({ itemFactors, rank }: Pick<FactorModel, 'rank' | 'itemFactors'>): ItemRows {
  return {
    rank,
    items: itemFactors.length / rank,
    read: async (positions, columns) => takeRows(itemFactors, rank, positions, columns),
  };
}

/** The model with only the users, or items, at these positions. */
export function withRows(model: FactorModel, side: 'users' | 'items', positions: Uint32Array): FactorModel {
  const factors = side === 'users' ? 'userFactors' : 'itemFactors';
  return {
    ...model,
    [side]: takeKeys(model[side], positions),
    [factors]: takeRows(model[factors], model.rank, positions),
  };
}

/** Copies rows of `width` numbers at these positions, or `count` numbers of each: see ItemRows. */
export function takeRows(
  values: Float32Array,
  width: number,
  positions: Uint32Array,
  { first, count }: { readonly first: number; readonly count: number } = { first: 0, count: width },
): Float32Array {
  const taken = sharedArray(Float32Array, positions.length * count);
  positions.forEach((position, at) => {
    const from = position * width + first;
    for (let k = 0; k < count; k++) taken[at * count + k] = values[from + k];
  });
  return taken;
}
