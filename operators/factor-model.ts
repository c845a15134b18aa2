import type { Device } from '../engine/executor.ts';
import { type KeyColumn, keyCount } from '../engine/keys/key-column.ts';
import { KeyLookup } from '../engine/keys/key-lookup.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';

/** What training gives and prediction needs. Factors are row-major without padding; ids ascend. */
export interface FactorModel {
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

export interface UploadedFactors {
  readonly users: PartitionRef;
  readonly items: PartitionRef;
  release(): void;
}

/** Copies the items' factors to the device's memory. The caller releases them, or its device scope does. Throws CapacityError when they don't fit. */
export function uploadItems(model: FactorModel, device: Device): PartitionRef {
  const ref: PartitionRef = { name: `${dataSetName('model')}/items`, partition: 0, version: 0 };
  device.put(ref, { layout: 'factors', rows: keyCount(model.items), columns: { values: model.itemFactors } });
  return ref;
}

/** Copies both sides to the device's memory. The caller releases them. Throws CapacityError when they don't fit. */
export function uploadFactors(model: FactorModel, device: Device): UploadedFactors {
  const name = dataSetName('model');
  const users: PartitionRef = { name: `${name}/users`, partition: 0, version: 0 };
  const items: PartitionRef = { name: `${name}/items`, partition: 0, version: 0 };
  const release = () => {
    device.release(users);
    device.release(items);
  };
  try {
    device.put(users, { layout: 'factors', rows: keyCount(model.users), columns: { values: model.userFactors } });
    device.put(items, { layout: 'factors', rows: keyCount(model.items), columns: { values: model.itemFactors } });
  } catch (error) {
    release();
    throw error;
  }
  return { users, items, release };
}
