/** Most distinct values. Numbers of plays or stars have far fewer, measured times have more. */
const MOST_VALUES = 1 << 16;
const SLOTS = 2 * MOST_VALUES;
const SHIFT = 32 - Math.log2(SLOTS);

/**
 * Numbers distinct float32 values, by their bits, in order of first occurrence. A hash table with open
 * addressing.
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

/** Maps values in place or into other memory. `of` is called once for each distinct value. */
export function mapValues(values: Float32Array, target: Float32Array, of: (value: number) => number): void {
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

/** Counts the distinct values of arrays; undefined if there are more than a table holds. */
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

  /** Values and their counts, ascending, so that sums over them do not depend on the order of insertion. */
  sorted(): readonly (readonly [value: number, count: number])[] | undefined {
    if (this.#tooMany) return undefined;
    return this.#values
      .map((value, at) => [value, this.#counts[at]] as const)
      .sort(([left], [right]) => left - right);
  }
}
