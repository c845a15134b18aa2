import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { type FoundIds, findIds, type Id } from '../../engine/keys/find-id.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { FactorModel } from './factor-model.ts';

export interface ItemLists {
  /** `deny`: items that are never recommended. `allow`: the only items that may be recommended. */
  readonly deny?: readonly Id[];
  readonly allow?: readonly Id[];
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

export function chooseItems(items: KeyColumn, { deny, allow }: ItemLists): ChosenItems {
  const none: FoundIds = { positions: new Uint32Array(0), unknown: 0 };
  const denied = deny === undefined ? none : findIds(items, deny);
  const allowed = allow === undefined ? undefined : findIds(items, allow);
  return {
    denied: denied.positions,
    allowed: allowed?.positions,
    unknown: denied.unknown + (allowed?.unknown ?? 0),
  };
}

/** The positions of the items that may be recommended, ascending; undefined if all may be. */
export function chosenPositions(items: number, { denied, allowed }: ChosenItems): Uint32Array | undefined {
  if (denied.length === 0 && allowed === undefined) return undefined;
  const left = new Uint8Array(items).fill(allowed === undefined ? 1 : 0);
  for (const item of allowed ?? []) left[item] = 1;
  for (const item of denied) left[item] = 0;
  return Uint32Array.from({ length: items }, (_, item) => item).filter((item) => left[item] === 1);
}

/** The model with only the items at these positions. */
export function withItemsAt(model: FactorModel, positions: Uint32Array): FactorModel {
  const { rank, items, itemFactors } = model;
  const factors = sharedArray(Float32Array, positions.length * rank);
  positions.forEach((item, at) =>
    factors.set(itemFactors.subarray(item * rank, (item + 1) * rank), at * rank),
  );
  return { ...model, items: takeKeys(items, positions), itemFactors: factors };
}

/** The model with only the items that may be recommended; the model itself if all may be. */
export function withChosenItems(model: FactorModel, chosen: ChosenItems): FactorModel {
  const positions = chosenPositions(keyCount(model.items), chosen);
  return positions === undefined ? model : withItemsAt(model, positions);
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
