/**
 * Lists of rows or parts of rows in the order in which a kernel processes them, four numbers an entry:
 *
 *   a part:  row, first rating, ratings, slot           ratings to be summed into normal equations
 *   a row:   row, first slot, ratings n_u, slots        slots to be summed and solved
 */
export interface Parts {
  readonly entries: Uint32Array;
  readonly count: number;
}

/**
 * Rows by descending number of ratings; equal ones by row number. Neighbours in this order take equally
 * long, and the longest rows start first.
 */
export function rowsByLength(offsets: Int32Array, from: number, to: number): Uint32Array {
  const lengthOf = (row: number) => offsets[row + 1] - offsets[row];
  let longest = 0;
  for (let row = from; row < to; row++) longest = Math.max(longest, lengthOf(row));
  const starts = new Uint32Array(longest + 2);
  for (let row = from; row < to; row++) starts[longest - lengthOf(row) + 1]++;
  for (let i = 1; i < starts.length; i++) starts[i] += starts[i - 1];
  const order = new Uint32Array(to - from);
  for (let row = from; row < to; row++) order[starts[longest - lengthOf(row)]++] = row;
  return order;
}

/** Rows in their own order. */
export function rowsInOrder(from: number, to: number): Uint32Array {
  return Uint32Array.from({ length: to - from }, (_, i) => from + i);
}

/**
 * A growing list of entries of four numbers. The first entry allocates memory for the expected number of
 * entries.
 */
export class EntryList {
  readonly #expected: number;
  #entries = new Uint32Array(0);
  #count = 0;

  constructor(expected = 256) {
    this.#expected = expected;
  }

  add(a: number, b: number, c: number, d: number): void {
    if (4 * this.#count === this.#entries.length) this.#grow();
    const entries = this.#entries;
    const at = 4 * this.#count++;
    entries[at] = a;
    entries[at + 1] = b;
    entries[at + 2] = c;
    entries[at + 3] = d;
  }

  #grow(): void {
    const larger = new Uint32Array(Math.max(4 * this.#expected, 2 * this.#entries.length));
    larger.set(this.#entries);
    this.#entries = larger;
  }

  get count(): number {
    return this.#count;
  }

  get list(): Parts {
    return { entries: this.#entries.subarray(0, 4 * this.#count), count: this.#count };
  }
}
