import type { RandomStream } from './random-stream.ts';
import { sharedArray } from '../../engine/partition.ts';

/**
 * Draws from a fixed discrete distribution with one look-up (A. J. Walker 1977; constructed as by M. D. Vose,
 * 1991). The high part of a 32-bit number picks slot i; another number is compared with the slot's threshold:
 * below gives i, else its alias.
 */
interface AliasTable {
  readonly size: number;
  /** P(stay in slot) * 2^32, rounded. A full slot is its own alias. */
  readonly threshold: Uint32Array;
  readonly alias: Uint32Array;
}

export function buildAliasTable(weights: Float64Array): AliasTable {
  const size = weights.length;
  let sum = 0;
  for (let i = 0; i < size; i++) sum += weights[i];
  const threshold = sharedArray(Uint32Array, size).fill(0xffff_ffff);
  const alias = sharedArray(Uint32Array, size);
  for (let i = 0; i < size; i++) alias[i] = i;
  const share = Float64Array.from(weights, (weight) => (weight / sum) * size);
  // Slots below the average are stacked at the front of `stack`, the others at its end.
  const stack = new Uint32Array(size);
  let below = 0;
  let above = size;
  for (let i = 0; i < size; i++) {
    if (share[i] < 1) stack[below++] = i;
    else stack[--above] = i;
  }
  while (below > 0 && above < size) {
    const poor = stack[--below];
    const rich = stack[above];
    threshold[poor] = Math.min(0xffff_ffff, Math.floor(share[poor] * 2 ** 32));
    alias[poor] = rich;
    share[rich] -= 1 - share[poor];
    if (share[rich] < 1) {
      above++;
      stack[below++] = rich;
    }
  }
  return { size, threshold, alias };
}

/** The slot or its alias for two independent uniform 32-bit numbers. */
function drawAlias(table: AliasTable, pick: number, stay: number): number {
  const slot = Math.floor((pick >>> 0) * (table.size / 2 ** 32));
  return stay >>> 0 < table.threshold[slot] ? slot : table.alias[slot];
}

/** The probabilities of the items in a draw. */
export interface ItemLaw {
  /** Weights by item id, all above 0. */
  readonly weights: Float64Array;
  readonly table: AliasTable;
}

/**
 * Samples items without replacement, with probabilities proportional to their weights among the items not yet
 * drawn.
 *
 * Draws are repeated while they hit an item already drawn. For a large share of the catalogue that could take
 * forever, so after a draw for each item the rest is drawn by exponential keys: item i gets the
 * key -ln(u) / weight, and the smallest keys are the draws. Both methods have the same distribution, since
 * successive sampling is a race of exponential times, which have no memory. The state is one stamp per item.
 */
export class ItemSampler {
  readonly #law: ItemLaw;
  /** The number of the last request that took the item. */
  readonly #stamps: Int32Array;
  readonly #keys: Float64Array;
  readonly #candidates: Int32Array;
  #request = 0;

  constructor(law: ItemLaw) {
    const size = law.weights.length;
    this.#law = law;
    this.#stamps = new Int32Array(size);
    this.#keys = new Float64Array(size);
    this.#candidates = new Int32Array(size);
  }

  /** Writes `count` different items to the front of `into`. Earlier items tend to be more popular. */
  sample(count: number, random: RandomStream, into: Int32Array): void {
    if (++this.#request === 2 ** 31 - 1) {
      this.#stamps.fill(0);
      this.#request = 1;
    }
    const { table } = this.#law;
    const stamps = this.#stamps;
    const request = this.#request;
    let found = 0;
    for (let draws = 0; found < count && draws < table.size; draws++) {
      const item = drawAlias(table, random.nextU32(), random.nextU32());
      if (stamps[item] === request) continue;
      stamps[item] = request;
      into[found++] = item;
    }
    if (found < count) this.#race(found, count, random, into);
  }

  #race(found: number, count: number, random: RandomStream, into: Int32Array): void {
    const { weights } = this.#law;
    const candidates = this.#candidates;
    const keys = this.#keys;
    let waiting = 0;
    for (let item = 0; item < weights.length; item++) {
      if (this.#stamps[item] === this.#request) continue;
      candidates[waiting] = item;
      keys[waiting++] = -Math.log(random.nextUniform()) / weights[item];
    }
    selectSmallest(keys, candidates, waiting, count - found);
    into.set(candidates.subarray(0, count - found), found);
  }
}

/**
 * Moves the `wanted` smallest of the first `count` keys to the front, with their values, in no particular
 * order (C. A. R. Hoare's FIND with the middle element as pivot).
 */
function selectSmallest(keys: Float64Array, values: Int32Array, count: number, wanted: number): void {
  let left = 0;
  let right = count - 1;
  while (left < right) {
    const pivot = keys[(left + right) >>> 1];
    let i = left;
    let j = right;
    while (i <= j) {
      while (keys[i] < pivot) i++;
      while (keys[j] > pivot) j--;
      if (i > j) break;
      const key = keys[i];
      keys[i] = keys[j];
      keys[j] = key;
      const value = values[i];
      values[i++] = values[j];
      values[j--] = value;
    }
    // Now keys[..j] <= pivot <= keys[i..], and the keys between equal the pivot.
    if (wanted - 1 <= j) right = j;
    else if (wanted - 1 >= i) left = i;
    else return;
  }
}
