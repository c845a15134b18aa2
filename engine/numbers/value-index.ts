/** Most distinct values in a table. */
const MOST_VALUES = 1 << 16;
const SLOTS = 2 * MOST_VALUES;
const SHIFT = 32 - Math.log2(SLOTS);

/**
 * Gives numbers from 0 on to distinct float32 values, compared by their bits, in order of first occurrence.
 * It is a hash table with open addressing.
 */
export class ValueIndex {
  readonly #bits = new Int32Array(SLOTS);
  /** 1 + the number of a slot's value; 0 for a free slot. */
  readonly #numbers = new Int32Array(SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Returns the number of a value. A new value gets the number `size`; -1 if the table is full. */
  numberOf(bits: number): number {
    let slot = Math.imul(bits, 0x9e3779b1) >>> SHIFT;
    for (;;) {
      const number = this.#numbers[slot];
      if (number === 0) break;
      if (this.#bits[slot] === bits) return number - 1;
      slot = (slot + 1) % SLOTS;
    }
    if (this.#size === MOST_VALUES) return -1;
    this.#bits[slot] = bits;
    this.#numbers[slot] = ++this.#size;
    return this.#size - 1;
  }
}

/** The bits of values, as a view of the same memory. */
export function bitsOf(values: Float32Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length);
}

/**
 * Number of places in a table of recent values, a power of two. Most values of an array with few distinct
 * values are found there.
 */
const RECENT = 1024;
const RECENT_SHIFT = 32 - Math.log2(RECENT);

function recentPlace(bits: number): number {
  return Math.imul(bits, 0x9e3779b1) >>> RECENT_SHIFT;
}

/**
 * Bits of the latest value at each place. At first they are bits that belong at another place, so that no
 * value matches them.
 */
function noRecent(): Int32Array {
  const recent = new Int32Array(RECENT);
  recent[recentPlace(0)] = 1;
  return recent;
}

/**
 * Applies a function to values, in place or into other memory. Results of recent values are
 * reused, so `of` must be pure; if there are few distinct values, it is called about once for each.
 */
export function mapValues(values: Float32Array, target: Float32Array, of: (value: number) => number): void {
  const bits = bitsOf(values);
  const [recent, results] = [noRecent(), new Float32Array(RECENT)];
  for (let k = 0; k < values.length; k++) {
    const own = bits[k];
    const place = recentPlace(own);
    if (recent[place] !== own) {
      results[place] = of(values[k]);
      recent[place] = own;
    }
    target[k] = results[place];
  }
}

/**
 * Counts the distinct values of arrays, and how often each occurs. Too many distinct values give no result.
 */
export class ValueCounts {
  readonly #index = new ValueIndex();
  readonly #values: number[] = [];
  readonly #counts: number[] = [];
  #tooMany = false;

  add(values: Float32Array): void {
    const bits = bitsOf(values);
    const [recent, counts] = [noRecent(), new Int32Array(RECENT)];
    for (let k = 0; k < values.length; k++) {
      const own = bits[k];
      const place = recentPlace(own);
      if (recent[place] !== own) {
        this.#addBits(recent[place], counts[place]);
        if (this.#tooMany) return;
        recent[place] = own;
        counts[place] = 0;
      }
      counts[place]++;
    }
    for (let place = 0; place < RECENT; place++) this.#addBits(recent[place], counts[place]);
  }

  /** Counts a value as `count` occurrences. */
  addCount(value: number, count: number): void {
    this.#addBits(bitsOf(Float32Array.of(value))[0], count);
  }

  #addBits(bits: number, count: number): void {
    if (count === 0) return;
    const number = this.#index.numberOf(bits);
    if (number < 0) this.#tooMany = true;
    else if (number < this.#values.length) this.#counts[number] += count;
    else {
      this.#values.push(new Float32Array(Int32Array.of(bits).buffer)[0]);
      this.#counts.push(count);
    }
  }

  /**
   * The distinct values with their counts, in ascending order, so that sums over them do not depend on the
   * order of insertion. Undefined if there are more values than the table holds.
   */
  sorted(): readonly (readonly [value: number, count: number])[] | undefined {
    if (this.#tooMany) return undefined;
    return this.#values
      .map((value, at) => [value, this.#counts[at]] as const)
      .sort(([left], [right]) => left - right);
  }
}

/** The formulas of `ValueWeight`. */
export type WeightForm = 'spark' | 'raw' | 'binary' | 'log' | 'bm25';

/**
 * A formula for the weight of a value r in a sparse table, with its constants. The weight has the sign of r.
 *
 *     spark   |r|
 *     raw     |r| · scale
 *     binary  1
 *     log     (1 + ln(1 + |r| / unit)) · scale
 *     bm25    x (k1 + 1) / (k1 (1 - b + b n / meanCount) + x) · scale,   x = |r| / unit,   n values in the column
 *
 * `meanCount` is the mean number of values of a column.
 */
export type ValueWeight = {
  readonly form: WeightForm;
  readonly unit: number;
  readonly scale: number;
  readonly meanCount: number;
};

/** Robertson's constants of BM25. */
const K1 = 1.2;
const B = 0.75;

/** The weight that equals the value. */
export const sparkWeight: ValueWeight = { form: 'spark', unit: 1, scale: 1, meanCount: 1 };

/** The weight of a value, with its sign. `count`: number of values of its column, which only bm25 uses. */
export function weightOf(
  { form, unit, scale, meanCount }: ValueWeight,
  value: number,
  count: number,
): number {
  if (form === 'spark') return value;
  if (form === 'binary') return Math.sign(value);
  if (form === 'raw') return value * scale;
  const x = Math.abs(value) / unit;
  if (form === 'log') return Math.sign(value) * (1 + Math.log1p(x)) * scale;
  return Math.sign(value) * ((x * (K1 + 1)) / (K1 * (1 - B + (B * count) / meanCount) + x)) * scale;
}
