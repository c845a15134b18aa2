import { Bands } from './bands.ts';
import { type PackedWords, packWords } from './pack-words.ts';
import { compareWords, RadixSort } from './radix-sort.ts';
import type { KeyWords } from './sort-keys.ts';
import { sortTies } from './sort-ties.ts';

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

/** The row numbers in sorted order. */
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
