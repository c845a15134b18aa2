/** Longest range that is added value by value. */
const SHORT = 16;

/**
 * Sums of ranges of values. Differences of running sums would lose digits, and keep a NaN or an infinity that
 * has left the range. So a range that only grows is added further, and any other one is added from the sums
 * of a binary tree, whose node i is the sum of the nodes 2i and 2i + 1.
 */
export class RangeSums {
  readonly #values: Float64Array;
  #tree: Float64Array | undefined;
  #lo: number;
  #hi: number;
  #sum: number;

  readonly #grows: boolean;

  /**
   * `grows`: ranges only grow, and are added from their beginning. `known`: the sum of a range that began before
   * the values and ends before `hi`; it counts as from 0.
   */
  constructor(values: Float64Array, grows: boolean, known?: { readonly hi: number; readonly sum: number }) {
    [this.#values, this.#grows] = [values, grows];
    [this.#lo, this.#hi, this.#sum] = known ? [0, known.hi, known.sum] : [-1, -1, 0];
  }

  /** The last sum. */
  get sum(): number {
    return this.#sum;
  }

  /** The sum of the values from `lo` to `hi` - 1. */
  of(lo: number, hi: number): number {
    const isGrown = lo === this.#lo && hi >= this.#hi;
    if (isGrown) this.#sum = this.#added(this.#sum, this.#hi, hi);
    else if (this.#grows || hi - lo <= SHORT) this.#sum = this.#added(0, lo, hi);
    else this.#sum = this.#ofTree(lo, hi);
    [this.#lo, this.#hi] = [lo, hi];
    return this.#sum;
  }

  #added(sum: number, from: number, to: number): number {
    let all = sum;
    for (let i = from; i < to; i++) all += this.#values[i];
    return all;
  }

  #ofTree(lo: number, hi: number): number {
    const tree = (this.#tree ??= treeOf(this.#values));
    const leaves = tree.length >> 1;
    let sum = 0;
    for (let [left, right] = [lo + leaves, hi + leaves]; left < right; left >>= 1, right >>= 1) {
      if (left & 1) sum += tree[left++];
      if (right & 1) sum += tree[--right];
    }
    return sum;
  }
}

function treeOf(values: Float64Array): Float64Array {
  const tree = new Float64Array(2 * values.length);
  tree.set(values, values.length);
  for (let i = values.length - 1; i > 0; i--) tree[i] = tree[2 * i] + tree[2 * i + 1];
  return tree;
}
