import { type PackedWords, packWords, compareWords, RadixSort } from './radix-sort.ts';
import { type KeyWords, compareRows, type KeyWord, type TextKey, wordAt } from './sort-keys.ts';
import { commonBytes, TEXT_WORDS, textsOfRows, writeTexts } from './sort-texts.ts';

/** The stable order of rows by their keys. */
export interface SortedRows {
  readonly bands: Bands;
  /** Rows in sorted order, as positions in the bands. */
  readonly places: Uint32Array;
}

/** The row numbers in stable sorted order. */
export function sortRows(keys: KeyWords): Uint32Array {
  return positionsOf(sortInBands(keys));
}

export function positionsOf({ bands, places }: SortedRows): Uint32Array {
  const rows = bands.rowsByPlace();
  const positions = new Uint32Array(places.length);
  for (let i = 0; i < positions.length; i++) positions[i] = rows[places[i]];
  return positions;
}

export function sortInBands(keys: KeyWords): SortedRows {
  const places = new Uint32Array(keys.rows);
  for (let place = 0; place < places.length; place++) places[place] = place;
  const packed = packWords(keys);
  const sorted = isSorted(packed.words, keys.rows);
  const bands = sorted ? Bands.one(keys.rows) : Bands.of(packed.words[0]);
  if (!sorted) sortEachBand(packed, bands, places);
  if (keys.texts.length > 0) sortTies(keys, { places, rows: bands.rowsByPlace() }, sortRows);
  return { bands, places };
}

function sortEachBand({ words, unused }: PackedWords, bands: Bands, places: Uint32Array): void {
  const { starts } = bands;
  const placed = starts.length === 2 ? words : words.map((word) => bands.place([word]));
  let most = 0;
  for (let i = 1; i < starts.length; i++) most = Math.max(most, starts[i] - starts[i - 1]);
  const sort = new RadixSort({ words: placed, unused }, places, most);
  for (let i = 1; i < starts.length; i++) sort.sort(starts[i - 1], starts[i]);
}

function isSorted(words: readonly Uint32Array[], rows: number): boolean {
  for (let row = 1; row < rows; row++) if (compareWords(words, 0, row - 1, row) > 0) return false;
  return true;
}

/** Most rows whose texts are compared pairwise. */
const FEW_ROWS = 32;

/** `rows`: row by position. `places`: positions in sorted order. */
interface Placed {
  readonly places: Uint32Array;
  readonly rows: Uint32Array;
}

/** Returns the stable order of rows. */
type Sort = (keys: KeyWords) => Uint32Array;

/**
 * Sorts those rows whose order the words do not decide, since their texts differ only after the bytes that
 * the words include.
 */
function sortTies(keys: KeyWords, { places, rows }: Placed, sort: Sort): void {
  if (!keys.texts.some(({ end, long }) => hasValue(keys.words[end - 1], long))) return;
  for (let start = 0, end = 1; end <= places.length; end++) {
    if (end < places.length && isTie(keys, rows[places[end - 1]], rows[places[end]])) continue;
    if (end - start > 1) sortTie(keys, { places: places.subarray(start, end), rows }, sort);
    start = end;
  }
}

function hasValue(word: KeyWord, value: number): boolean {
  return typeof word === 'number' ? word === value : word.includes(value);
}

/** True if two rows have a long text and equal words up to its end. */
function isTie({ words, texts }: KeyWords, a: number, b: number): boolean {
  let word = 0;
  for (const { end, long } of texts) {
    for (; word < end; word++) if (wordAt(words[word], a) !== wordAt(words[word], b)) return false;
    if (wordAt(words[end - 1], a) === long) return true;
  }
  return false;
}

/** Sorts rows with equal words up to a long text, by the bytes after the texts' common prefix. */
function sortTie(keys: KeyWords, { places, rows }: Placed, sort: Sort): void {
  if (places.length <= FEW_ROWS) {
    places.sort((a, b) => compareRows(keys, rows[a], keys, rows[b]) || a - b);
    return;
  }
  const inOrder = places.toSorted();
  const own = inOrder.map((place) => rows[place]);
  const order = sort(keysAfterText(keys, own));
  for (let i = 0; i < order.length; i++) places[i] = inOrder[order[i]];
}

/**
 * The sort keys of rows whose words are equal up to their first long text: the remaining bytes of that text,
 * then the keys after it.
 */
function keysAfterText({ words, texts }: KeyWords, rows: Uint32Array): KeyWords {
  const at = texts.findIndex(({ end, long }) => wordAt(words[end - 1], rows[0]) === long);
  const first = texts[at];
  const same = textsOfRows(first.texts, rows, first.texts.skip ?? 0);
  const rest = { ...same, skip: (same.skip ?? 0) + commonBytes(same) };
  const ofText = Array.from({ length: TEXT_WORDS }, () => new Uint32Array(rows.length));
  writeTexts(rest, rows.length, ofText);
  if (first.sign < 0) for (const word of ofText) for (let i = 0; i < word.length; i++) word[i] = ~word[i];
  const moved = ({ end, texts: own, ...key }: TextKey): TextKey => ({
    ...key,
    end: end - first.end + TEXT_WORDS,
    texts: textsOfRows(own, rows, own.skip ?? 0),
  });
  return {
    rows: rows.length,
    words: [...ofText, ...words.slice(first.end).map((word) => wordOfRows(word, rows))],
    texts: [{ ...first, end: TEXT_WORDS, texts: rest }, ...texts.slice(at + 1).map(moved)],
  };
}

function wordOfRows(word: KeyWord, rows: Uint32Array): KeyWord {
  return typeof word === 'number' ? word : rows.map((row) => word[row]);
}

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
