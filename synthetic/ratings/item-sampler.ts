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
 * A sampler of different items. Each draw goes by weight among those not yet taken.
 *
 * Draws from all items are repeated while they hit a taken one. For a large share of the catalogue that could
 * take for ever, so after as many draws as there are items the rest comes from exponential keys: item i gets
 * the key -ln(u) / weight, and the smallest keys are the draws. Both ways have the same law, since successive
 * sampling is such a race of exponential times, and these have no memory. The state is one stamp an item.
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

  /**
   * Writes `count` different items to the front of `into`. The earlier an item stands, the more popular it
   * tends to be.
   */
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
