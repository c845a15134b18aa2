import { type KeyColumn, keyCount, mergeKeys, takeKeys, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { AttributeCoefficients, AttributeMatrix } from './attribute-matrix.ts';
import { type EncodedRows, keysOfType } from './attribute-rows.ts';
import type { AttributeEncoding } from './encoding.ts';
import type { KeptRows } from './kept-rows.ts';

/** The attributes of a side of a model. */
export interface ModelAttributes {
  /** The column of ids. */
  readonly id: string;
  readonly encoding: AttributeEncoding;
  readonly coefficients: AttributeCoefficients;
  /** Attributes in memory: of the training, and of rows that were added. A loaded model has none. */
  readonly kept?: KeptRows;
}

/** A side of a model, by ascending id. */
export interface SideRows {
  readonly ids: KeyColumn;
  /** Row-major, rows x columns. */
  readonly factors: Float32Array;
  readonly columns: number;
  /** Number of ratings of each row, if it is known. */
  readonly counts: Uint32Array | undefined;
  /** Damped means as differences from the mean of all ratings. */
  readonly means: Float32Array | undefined;
}

/** A side with further rows, and the number of rows that are new, that have other factors, and that keep theirs. */
export interface ExtendedRows extends SideRows {
  readonly added: number;
  readonly changed: number;
  readonly kept: number;
}

/**
 * Adds rows by their attributes: row r of F gets the factors f_r B. Rows with ratings keep their factors; rows
 * that have no rating get those of their new attributes. Throws DataError for ids that the side's type cannot
 * hold.
 */
export function withAttributeRows(
  side: SideRows,
  rows: EncodedRows,
  { values: coefficients }: AttributeCoefficients,
): ExtendedRows {
  const { columns, counts } = side;
  const own = ascending(keysOfType(rows.ids, side.ids.type));
  const { keys, first, second } = mergeKeys(side.ids, own.ids);
  const total = keyCount(keys);
  const factors = sharedArray(Float32Array, total * columns);
  copyRows(side.factors, columns, first, factors);
  const wasRow = new Uint32Array(total).fill(UNKNOWN_KEY);
  first.forEach((place, row) => (wasRow[place] = row));
  let [changed, kept] = [0, 0];
  const factorsOf = factorsBy(coefficients, columns);
  second.forEach((place, row) => {
    const before = wasRow[place];
    if (before !== UNKNOWN_KEY && counts?.[before] !== 0) {
      kept++;
      return;
    }
    if (before !== UNKNOWN_KEY) changed++;
    factorsOf(rows.matrix, own.order[row], factors, place * columns);
  });
  const moved = <T extends Uint32Array | Float32Array>(from: T | undefined, to: T): T | undefined => {
    if (from === undefined) return undefined;
    first.forEach((place, row) => (to[place] = from[row]));
    return to;
  };
  return {
    ids: keys,
    factors,
    columns,
    counts: moved(counts, new Uint32Array(total)),
    means: moved(side.means, new Float32Array(total)),
    added: second.length - changed - kept,
    changed,
    kept,
  };
}

/** Adds rows with given factors, which have no ratings: see withAttributeRows. */
export function givenRows(ids: KeyColumn, factors: Float32Array, columns: number) {
  const rows = keyCount(ids);
  const at = (length: number) => Uint32Array.from({ length }, (_, k) => k);
  // Row r has feature r alone, whose coefficients are its factors.
  const matrix = {
    rows,
    features: rows,
    offsets: Int32Array.from(at(rows + 1)),
    indices: at(rows),
    values: new Float32Array(rows).fill(1),
  };
  return { rows: { ids, matrix }, coefficients: { features: rows, columns, values: factors } };
}

/** The prior of a row without attributes, which has the constant feature alone. */
export function constantRow({ values, columns }: AttributeCoefficients): Float32Array {
  return values.subarray(0, columns);
}

/** The rows of attributes whose ids are not among `ids`: their positions. */
export function unknownRows(rows: EncodedRows, ids: KeyColumn): Uint32Array {
  const positions = new KeyLookup(ids).positionsOf(rows.ids);
  return Uint32Array.from(positions.keys()).filter((row) => positions[row] === UNKNOWN_KEY);
}

function ascending(ids: KeyColumn): { readonly ids: KeyColumn; readonly order: Uint32Array } {
  const table = makeKeyTable(ids.type);
  table.add(ids, new Uint32Array(keyCount(ids)));
  const order = table.ascending();
  return { ids: takeKeys(ids, order), order };
}

/** Copies row r to the place `places[r]`, which ascend; runs of adjacent rows at once. */
export function copyRows(from: Float32Array, columns: number, places: Uint32Array, to: Float32Array): void {
  for (let start = 0, row = 1; row <= places.length; row++) {
    if (row < places.length && places[row] === places[row - 1] + 1) continue;
    to.set(from.subarray(start * columns, row * columns), places[start] * columns);
    start = row;
  }
}

/** Writes f_r B of a row to a place, summed in float64. */
export function factorsBy(coefficients: Float32Array, columns: number) {
  const sums = new Float64Array(columns);
  return ({ offsets, indices, values }: AttributeMatrix, row: number, to: Float32Array, at: number): void => {
    sums.fill(0);
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const [value, from] = [values[k], indices[k] * columns];
      for (let c = 0; c < columns; c++) sums[c] += value * coefficients[from + c];
    }
    for (let c = 0; c < columns; c++) to[at + c] = sums[c];
  };
}
