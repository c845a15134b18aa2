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

/**
 * Limits that decide which kernel solves a row, by the row's number of ratings. They are tested in the order
 * of the fields: `short`, `fused`. A row that is longer than these limits is solved in two steps: one
 * kernel sums its A and b into slots (scratch memory), another solves the row from the slots.
 */
export interface RowLimits {
  /** Most ratings of a row that is solved by its dual system (n unknowns for n ratings); 0 disables this. */
  readonly short: number;
  /**
   * Most ratings of a row for the fused kernel, which computes A and solves the row in one dispatch; -1
   * disables it. Longer rows are cut into parts. One kernel sums each part's A and b into a slot of device
   * memory, and another kernel adds a row's slots and solves the row.
   */
  readonly fused: number;
  /**
   * Most ratings of one part of a long row. A very long row gets longer parts, so that its slots fit a batch.
   */
  readonly part: number;
  /**
   * Present if θ is divided into regions of `rows` rows, which fit the GPU's cache. A row with more than `part`
   * ratings and at least `least` ratings is also cut where its columns enter the next region.
   */
  readonly regions?: { readonly rows: number; readonly least: number };
  /** True: rows without ratings are left out of all lists. */
  readonly ratedOnly: boolean;
  /** Number of slots (see `fused`) that are in memory at the same time. It limits the rows of a batch. */
  readonly slots: number;
}

/**
 * A batch of long rows. One kernel sums their parts into slots (scratch memory for A and b of a part),
 * another solves the rows from these slots. All slots of the batch are in memory at the same time. `parts`
 * and `rows`: see Parts.
 */
export interface DealtBatch {
  readonly parts: Parts;
  readonly rows: Parts;
  readonly slots: number;
}

/**
 * The rows of a range, divided among the kernels. Each row is in exactly one list, or with `ratedOnly` in
 * none if it has no ratings. The fields have the names of the limits in RowLimits.
 */
export interface DealtRows {
  /**
   * Rows that are solved by dual systems (n unknowns for n ratings). There is one list for each length of
   * SHORT_LENGTHS that is needed; `longest` is that length.
   */
  readonly short: readonly (Parts & { readonly longest: number })[];
  readonly fused: Parts;
  readonly batches: readonly DealtBatch[];
}

/**
 * Rows that are solved by dual systems are divided into lists by their numbers of ratings: up to 32, and up
 * to 64. The kernel update-short is compiled once for each list.
 */
export const SHORT_LENGTHS = [32, 64];

/**
 * Divides the rows [from, to) among the kernels, by numbers of ratings only. It has no side effects.
 *
 * `offsets`: row pointers of the CSR block. `columns`: column indices of all ratings, ascending within a row;
 * if undefined, rows are not cut at the borders of regions.
 */
export function dealRows(
  offsets: Int32Array,
  columns: Uint32Array | undefined,
  from: number,
  to: number,
  limits: RowLimits,
): DealtRows {
  // Each list has room for all rows. The system provides the memory only when it is written.
  const fused = new EntryList(to - from);
  const short = SHORT_LENGTHS.map((longest) => ({ longest, list: new EntryList(to - from) }));
  const batches: DealtBatch[] = [];
  let [parts, rows, slots]: [Part[], EntryList, number] = [[], new EntryList(), 0];
  const flush = () => {
    if (rows.count > 0) batches.push({ parts: partEntries(parts), rows: rows.list, slots });
    [parts, rows, slots] = [[], new EntryList(), 0];
  };
  const order = rowsByLength(offsets, from, to);
  for (let next = 0; next < order.length; next++) {
    const row = order[next];
    const start = offsets[row];
    const length = offsets[row + 1] - start;
    if (length === 0 && limits.ratedOnly) continue;
    const whole =
      limits.short > 0 && length <= limits.short
        ? short.find(({ longest }) => length <= longest)?.list
        : length <= limits.fused
          ? fused
          : undefined;
    if (whole !== undefined) {
      whole.add(row, start, length, 0);
      continue;
    }
    const cuts = cutRow(columns, start, length, limits);
    if (slots + cuts.length > limits.slots) flush();
    rows.add(row, slots, length, cuts.length);
    for (const cut of cuts) parts.push({ ...cut, row, slot: slots++ });
  }
  flush();
  return {
    short: short.filter(({ list }) => list.count > 0).map(({ longest, list }) => ({ longest, ...list.list })),
    fused: fused.list,
    batches,
  };
}

interface Cut {
  readonly start: number;
  readonly length: number;
  readonly region: number;
}

interface Part extends Cut {
  readonly row: number;
  readonly slot: number;
}

/**
 * Cuts a row's ratings into consecutive parts of at most `part` ratings, each of which is summed into a slot
 * of its own. It is also cut where its columns enter the next region of θ (see RowLimits). If that would need
 * more slots than a batch has, the row is cut again into larger parts,
 * without regions. A row without ratings gets one empty part, since the solver reads at least one slot for
 * each row.
 */
function cutRow(
  columns: Uint32Array | undefined,
  start: number,
  length: number,
  { part, regions, slots }: Pick<RowLimits, 'part' | 'regions' | 'slots'>,
): Cut[] {
  if (length <= part) return [{ start, length, region: 0 }];
  const cuts: Cut[] = [];
  const bordered = columns !== undefined && regions !== undefined && length >= regions.least;
  const size = Math.max(part, Math.ceil((2 * length) / slots));
  for (let at = start; at < start + length;) {
    const region = bordered ? Math.floor(columns[at] / regions.rows) : 0;
    const end = bordered
      ? firstAtLeast(columns, at, start + length, (region + 1) * regions.rows)
      : start + length;
    const piece = Math.ceil((end - at) / Math.ceil((end - at) / size));
    for (let first = at; first < end; first += piece)
      cuts.push({ start: first, length: Math.min(piece, end - first), region });
    at = end;
  }
  return cuts.length <= slots
    ? cuts
    : cutRow(columns, start, length, { part: Math.ceil(length / slots), slots: length });
}

/**
 * Binary search: the first index in [from, to) whose column is at least `column`, or `to`. Columns must be
 * ascending.
 */
function firstAtLeast(columns: Uint32Array, from: number, to: number, column: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (columns[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Orders the parts of a batch by region, a range of rows of θ that fits the GPU's cache, then by descending
 * length. Workgroups that run at the same time then read the same region of θ.
 */
function partEntries(parts: Part[]): Parts {
  parts.sort(
    (left, right) => left.region - right.region || right.length - left.length || left.slot - right.slot,
  );
  const list = new EntryList(parts.length);
  for (const { row, start, length, slot } of parts) list.add(row, start, length, slot);
  return list.list;
}
