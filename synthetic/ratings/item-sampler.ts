import { type AliasTable, drawAlias } from './alias-table.ts';
import type { RandomStream } from './random-stream.ts';
import { selectSmallest } from './select-smallest.ts';

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
