/** Rows of a band, few enough that their 4-byte values fit the cache of one core. */
const BAND_ROWS = 1 << 14;
const MOST_BANDS = 256;
/** The borders of bands are chosen from counts of the rows by this number of highest bits. */
const CELL_BITS = 12;

/** Values of one width: 32-bit words (a value may have several), or smaller numbers. */
export type BandValues = Uint32Array | Uint16Array | Uint8Array;

/**
 * Rows divided into bands by the highest bits of their first sort word. In sorted order, the rows of a band
 * come before the rows of the next band; within a band they keep the order of the input. Sorting and moving
 * rows band by band stays in the cache; random access to a million rows costs a cache miss each.
 */
export class Bands {
  readonly rows: number;
  /** The first position of each band, and the end of the last band. */
  readonly starts: Uint32Array;
  /** The band of each row; undefined if there is one band. */
  readonly #ofRow: Uint8Array | undefined;

  private constructor(rows: number, starts: Uint32Array, ofRow?: Uint8Array) {
    [this.rows, this.starts, this.#ofRow] = [rows, starts, ofRow];
  }

  static one(rows: number): Bands {
    return new Bands(rows, Uint32Array.of(0, rows));
  }

  /** Bands with about the same number of rows, unless words repeat. */
  static of(words: Uint32Array): Bands {
    const rows = words.length;
    const wanted = Math.min(MOST_BANDS, Math.round(rows / BAND_ROWS));
    if (wanted < 2) return Bands.one(rows);
    const shift = 32 - CELL_BITS;
    const cells = new Uint32Array(1 << CELL_BITS);
    for (let row = 0; row < rows; row++) cells[words[row] >>> shift]++;
    const bandOf = new Uint8Array(cells.length);
    const starts = [0];
    let before = 0;
    for (let cell = 0; cell < cells.length; cell++) {
      const isFull = before - starts[starts.length - 1] >= rows / wanted;
      if (isFull && starts.length < MOST_BANDS) starts.push(before);
      bandOf[cell] = starts.length - 1;
      before += cells[cell];
    }
    const ofRow = new Uint8Array(rows);
    for (let row = 0; row < rows; row++) ofRow[row] = bandOf[words[row] >>> shift];
    return new Bands(rows, Uint32Array.of(...starts, rows), ofRow);
  }

  /** The row at each position of the bands. */
  rowsByPlace(): Uint32Array {
    const rows = new Uint32Array(this.rows);
    const [ofRow, next] = [this.#ofRow, this.starts.slice()];
    if (ofRow === undefined) for (let row = 0; row < rows.length; row++) rows[row] = row;
    else for (let row = 0; row < rows.length; row++) rows[next[ofRow[row]]++] = row;
    return rows;
  }

  /**
   * Moves values to the positions of their rows in the bands. `chunks`: the values of all rows, `width`
   * elements for each.
   */
  place<T extends BandValues>(chunks: readonly T[], width = 1): T {
    const values = new (chunks[0].constructor as new (length: number) => T)(this.rows * width);
    const next = this.starts.slice();
    let row = 0;
    for (const chunk of chunks) {
      if (this.#ofRow === undefined) values.set(chunk, row * width);
      else if (width === 1) placeEach(chunk, this.#ofRow.subarray(row), next, values);
      else if (width === 2) placePairs(chunk, this.#ofRow.subarray(row), next, values);
      else placeWide(chunk, this.#ofRow.subarray(row), next, { values, width });
      row += chunk.length / width;
    }
    return values;
  }

  /** Like `place`, for bits: `bits` has one byte for each bit, the result is packed. */
  placeBits(bits: Uint8Array): Uint8Array {
    const placed = new Uint8Array(((this.rows + 63) >> 6) << 3);
    const [ofRow, next] = [this.#ofRow, this.starts.slice()];
    for (let row = 0; row < bits.length; row++) {
      const at = ofRow === undefined ? row : next[ofRow[row]]++;
      placed[at >> 3] |= bits[row] << (at & 7);
    }
    return placed;
  }
}

function placeEach(from: BandValues, bands: Uint8Array, next: Uint32Array, to: BandValues): void {
  if (from instanceof Uint32Array)
    for (let row = 0; row < from.length; row++) to[next[bands[row]]++] = from[row];
  else for (let row = 0; row < from.length; row++) to[next[bands[row]]++] = from[row];
}

function placePairs(from: BandValues, bands: Uint8Array, next: Uint32Array, to: BandValues): void {
  for (let row = 0; 2 * row < from.length; row++) {
    const at = 2 * next[bands[row]]++;
    to[at] = from[2 * row];
    to[at + 1] = from[2 * row + 1];
  }
}

function placeWide(
  from: BandValues,
  bands: Uint8Array,
  next: Uint32Array,
  { values, width }: { readonly values: BandValues; readonly width: number },
): void {
  for (let row = 0, at = 0; at < from.length; row++) {
    let place = width * next[bands[row]]++;
    for (const end = at + width; at < end;) values[place++] = from[at++];
  }
}
