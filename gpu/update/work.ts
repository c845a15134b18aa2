/**
 * A list of work for a kernel: rows, or parts of rows, in the order in which workgroups take them. An entry
 * has four numbers:
 *
 *     a part of a row:  row, first rating, number of ratings, slot             sum the ratings into the slot
 *     a row:            row, first slot, number of ratings, number of slots    add the slots, solve the row
 */
export interface Parts {
  readonly entries: Uint32Array;
  readonly count: number;
}

/**
 * The rows [from, to) by descending number of ratings, by a counting sort; rows of equal length by row
 * number. The longest rows start first, and rows that run at the same time take about the same time.
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

/**
 * A list of entries of four numbers, which grows as needed. Memory for the expected number of entries is
 * allocated when the first entry is added.
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
