import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import type { ExecutionContext } from '../../engine/operator.ts';
import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import type { Place } from '../../engine/run/place.ts';

/** The result of training, which prediction needs. Factors are row-major without padding; ids ascend. */
export interface FactorModel {
  /** Numbers of a row: the rank that was asked for, and with biases two more. */
  readonly rank: number;
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** X: m x rank. */
  readonly userFactors: Float32Array;
  /** Θ: n x rank. */
  readonly itemFactors: Float32Array;
}

const lookups = new WeakMap<KeyColumn, KeyLookup>();

/** The lookup of a column of ids, made once. */
export function lookupOf(ids: KeyColumn): KeyLookup {
  let lookup = lookups.get(ids);
  if (lookup === undefined) {
    lookup = new KeyLookup(ids);
    lookups.set(ids, lookup);
  }
  return lookup;
}

/** The sides of a model at a device. */
export interface PlacedFactors {
  readonly users: PartitionRef;
  readonly items: PartitionRef;
}

/** Copies both sides, or one, to the memory of a device, for as long as the holdings of `ctx` are open. Throws CapacityError when they don't fit. */
export async function placeFactors(model: FactorModel, at: Place, ctx: ExecutionContext, sides: readonly ('users' | 'items')[] = ['users', 'items']): Promise<PlacedFactors> {
  const name = dataSetName('model');
  const ref = (side: string): PartitionRef => ({ name: `${name}/${side}`, partition: 0, version: 0 });
  const refs = { users: ref('users'), items: ref('items') };
  const values = { users: model.userFactors, items: model.itemFactors };
  await giveTo(ctx, at, sides.map((side) => [refs[side], { layout: 'factors', rows: keyCount(model[side]), columns: { values: values[side] } }]));
  return refs;
}
