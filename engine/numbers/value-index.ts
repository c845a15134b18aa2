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

/** For fewer values than this, the table costs more than it saves. */
const LEAST_MAPPED = 4096;

/**
 * Applies a function to values, in place or into other memory. If there are many, `of` is called once for
 * each distinct value, as far as the table has room.
 */
export function mapValues(values: Float32Array, target: Float32Array, of: (value: number) => number): void {
  if (values.length < LEAST_MAPPED) {
    for (let k = 0; k < values.length; k++) target[k] = of(values[k]);
    return;
  }
  const index = new ValueIndex();
  const results: number[] = [];
  const bits = bitsOf(values);
  for (let k = 0; k < values.length; k++) {
    const before = index.size;
    const number = index.numberOf(bits[k]);
    if (number === before) results.push(of(values[k]));
    target[k] = number < 0 ? of(values[k]) : results[number];
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
    for (let k = 0; k < values.length && !this.#tooMany; k++) {
      const before = this.#index.size;
      const number = this.#index.numberOf(bits[k]);
      if (number < 0) this.#tooMany = true;
      else if (number === before) {
        this.#values.push(values[k]);
        this.#counts.push(1);
      } else this.#counts[number]++;
    }
  }

  /** Counts a value as `count` occurrences. */
  addCount(value: number, count: number): void {
    const number = this.#index.numberOf(bitsOf(Float32Array.of(value))[0]);
    if (number < 0) this.#tooMany = true;
    else if (number < this.#values.length) this.#counts[number] += count;
    else {
      this.#values.push(value);
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
