import { EntryList, type Parts, rowsByLength, rowsInOrder } from './work.ts';

/** Limits on the number of ratings of a row, which determine the kernel that gets the row. */
export interface RowLimits {
  /** Rows are processed by falling length. */
  readonly sorted: boolean;
  /** Longest rows for dual systems; 0 for none. */
  readonly short: number;
  /** Longest rows for CG without A; 0 for none. */
  readonly free: number;
  /** Longest rows for the fused kernel. All longer rows are cut into parts, which are summed into slots. */
  readonly fused: number;
  /** Most ratings of a part of a row that is summed into slots. */
  readonly part: number;
  /**
   * Rows of θ in a region. A row that has several parts, and at least `bordered` ratings, is also cut at the
   * borders of regions.
   */
  readonly regionRows: number;
  readonly bordered: number;
  /** Rows without ratings are in no list. */
  readonly ratedOnly: boolean;
  /** Slots that a batch holds. */
  readonly slots: number;
}

/** Rows that are summed and then solved together, limited by the slots of the scratch buffer. */
export interface DealtBatch {
  readonly parts: Parts;
  readonly rows: Parts;
  readonly slots: number;
}

/** The rows of a range, each in one list at most. */
export interface DealtRows {
  /** Lists of short rows; each list has rows of at most `longest` ratings. */
  readonly short: readonly (Parts & { readonly longest: number })[];
  readonly free: Parts;
  readonly fused: Parts;
  readonly batches: readonly DealtBatch[];
}

/** Most ratings of a row, for each list of short rows. update-short is compiled for each of these lengths. */
export const SHORT_LENGTHS = [32, 64];

/**
 * Divides the rows [from, to) among the kernels. `offsets`: row pointers. `columns`: ascending within a row;
 * if undefined, no row is cut by regions. A pure function.
 */
export function dealRows(
  offsets: Int32Array,
  columns: Uint32Array | undefined,
  from: number,
  to: number,
  limits: RowLimits,
): DealtRows {
  // Untouched memory costs nothing.
  const [fused, free] = [new EntryList(to - from), new EntryList(to - from)];
  const short = SHORT_LENGTHS.map((longest) => ({ longest, list: new EntryList(to - from) }));
  const batches: DealtBatch[] = [];
  let [parts, rows, slots]: [Part[], EntryList, number] = [[], new EntryList(), 0];
  const flush = () => {
    if (rows.count > 0) batches.push({ parts: partEntries(parts), rows: rows.list, slots });
    [parts, rows, slots] = [[], new EntryList(), 0];
  };
  const order = limits.sorted ? rowsByLength(offsets, from, to) : rowsInOrder(from, to);
  for (let next = 0; next < order.length; next++) {
    const row = order[next];
    const start = offsets[row];
    const length = offsets[row + 1] - start;
    if (length === 0 && limits.ratedOnly) continue;
    const whole =
      limits.short > 0 && length <= limits.short
        ? short.find(({ longest }) => length <= longest)?.list
        : length <= limits.free && limits.free > 0
          ? free
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
    free: free.list,
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
 * Cuts a row into pieces in order, none longer than a part. A row with enough ratings is also cut at the
 * borders of regions of θ, unless that would need more pieces than a batch has slots. A row without ratings
 * gets one empty piece, so that the solver has a slot to read.
 */
function cutRow(
  columns: Uint32Array | undefined,
  start: number,
  length: number,
  { part, regionRows, bordered, slots }: Pick<RowLimits, 'part' | 'regionRows' | 'bordered' | 'slots'>,
): Cut[] {
  if (length <= part) return [{ start, length, region: 0 }];
  const cuts: Cut[] = [];
  const rows = length < bordered ? 2 ** 32 : regionRows;
  const whole = columns === undefined || rows === 2 ** 32;
  const size = Math.max(part, Math.ceil((2 * length) / slots));
  for (let at = start; at < start + length;) {
    const region = whole ? 0 : Math.floor(columns[at] / rows);
    const end = whole ? start + length : firstAtLeast(columns, at, start + length, (region + 1) * rows);
    const piece = Math.ceil((end - at) / Math.ceil((end - at) / size));
    for (let first = at; first < end; first += piece)
      cuts.push({ start: first, length: Math.min(piece, end - first), region });
    at = end;
  }
  return cuts.length <= slots
    ? cuts
    : cutRow(columns, start, length, {
        part: Math.ceil(length / slots),
        regionRows: 2 ** 32,
        bordered: 0,
        slots: length,
      });
}

/** The first of the ascending columns [from, to) that is at least `column`. */
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
 * Sorts parts by region, and within a region by descending length. Parts that run at the same time then read
 * the same region of θ.
 */
function partEntries(parts: Part[]): Parts {
  parts.sort(
    (left, right) => left.region - right.region || right.length - left.length || left.slot - right.slot,
  );
  const list = new EntryList(parts.length);
  for (const { row, start, length, slot } of parts) list.add(row, start, length, slot);
  return list.list;
}
