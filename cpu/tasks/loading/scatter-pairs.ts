import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { ScopeOf, TaskHandler, TaskScope } from '../../handler.ts';

/** See `count-pairs` of KernelTasks. */
export const countPairs: TaskHandler<'count-pairs'> = (scope) => {
  const counts = sharedArray(Int32Array, scope.params.bands);
  let pairs = 0;
  for (let chunk = 0; chunk < scope.params.chunks && !scope.cancelled(); chunk++) {
    const { rowCodes, rowMap } = rowsOf(scope, chunk);
    const { bandOf } = bandsOf(scope);
    countBands(rowCodes, rowMap === undefined ? bandOf : bandsByCode(bandOf, rowMap), counts);
    pairs += rowCodes.length;
  }
  return { rows: pairs, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

function countBands(rowCodes: Uint32Array, bandOfCode: Bands, counts: Int32Array): void {
  for (let k = 0; k < rowCodes.length; k++) counts[bandOfCode[rowCodes[k]]]++;
}

/** See `scatter-pairs` of KernelTasks. */
export const scatterPairs: TaskHandler<'scatter-pairs'> = (scope) => {
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { bandOf, firstRow } = bandsOf(scope);
  const { keys, bits } = keysOf(scope.partition('block'));
  let pairs = 0;
  for (let chunk = 0; chunk < scope.params.chunks && !scope.cancelled(); chunk++) {
    const { rowCodes, columnCodes, rowMap } = rowsOf(scope, chunk);
    const { values, timestamps } = scope.partition(`values.${chunk}`).columns;
    let source = new Uint32Array(values.buffer, values.byteOffset, rowCodes.length);
    if (scope.params.firstRow !== undefined) {
      const first = scope.params.firstRow + pairs;
      const rowData = scope.partition('rowData').columns as { ratings: Float32Array; timestamps: Float64Array };
      rowData.ratings.set(values as Float32Array, first);
      rowData.timestamps.set(timestamps as Float64Array, first);
      source = Uint32Array.from({ length: rowCodes.length }, (_, k) => first + k);
    }
    const bandOfCode = rowMap === undefined ? bandOf : bandsByCode(bandOf, rowMap);
    scatter({ rowCodes, rowMap, columnCodes, columnMap: mapOf(scope, 'columnMap', chunk), source }, bandOfCode, firstRow, scope.params.columnBits, cursors, keys, bits);
    pairs += rowCodes.length;
  }
  return { rows: pairs };
};

interface Pairs {
  readonly rowCodes: Uint32Array;
  readonly rowMap: Uint32Array | undefined;
  readonly columnCodes: Uint32Array;
  readonly columnMap: Uint32Array | undefined;
  readonly source: Uint32Array;
}

function scatter({ rowCodes, rowMap, columnCodes, columnMap, source }: Pairs, bandOfCode: Bands, firstRow: Int32Array, columnBits: number, cursors: Int32Array, keys: Uint32Array, bits: Uint32Array): void {
  for (let k = 0; k < rowCodes.length; k++) {
    const code = rowCodes[k];
    const band = bandOfCode[code];
    const row = (rowMap === undefined ? code : rowMap[code]) - firstRow[band];
    const place = cursors[band]++;
    keys[place] = (row << columnBits) | (columnMap === undefined ? columnCodes[k] : columnMap[columnCodes[k]]);
    bits[place] = source[k];
  }
}

type Bands = Uint16Array | Uint32Array;

/** The bands that ratings are scattered to. */
export function bandsOf(scope: TaskScope): { readonly bandOf: Bands; readonly firstRow: Int32Array } {
  return scope.partition('bands').columns as { bandOf: Bands; firstRow: Int32Array };
}

/** The arrays of a block that hold keys, then columns, and values as their bits, so that ratings and row numbers go alike. */
export function keysOf({ columns }: Partition): { readonly offsets: Int32Array; readonly keys: Uint32Array; readonly bits: Uint32Array } {
  const { offsets, indices, values } = columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  return { offsets, keys: indices, bits: new Uint32Array(values.buffer, values.byteOffset, values.length) };
}

function rowsOf(scope: ScopeOf<'count-pairs' | 'scatter-pairs'>, chunk: number) {
  const codes = scope.partition(`codes.${chunk}`).columns as { users: Uint32Array; items: Uint32Array };
  const [rowCodes, columnCodes] = scope.params.by === 'users' ? [codes.users, codes.items] : [codes.items, codes.users];
  return { rowCodes, columnCodes, rowMap: mapOf(scope, 'rowMap', chunk) };
}

function mapOf(scope: TaskScope, name: string, chunk: number): Uint32Array | undefined {
  const input = `${name}.${chunk}`;
  return scope.hasInput(input) ? (scope.partition(input).columns.map as Uint32Array) : undefined;
}

/** The band of each code: one look-up a rating instead of two. */
function bandsByCode(bandOf: Bands, rowMap: Uint32Array): Bands {
  const bands = bandOf instanceof Uint16Array ? new Uint16Array(rowMap.length) : new Uint32Array(rowMap.length);
  for (let code = 0; code < bands.length; code++) bands[code] = bandOf[rowMap[code]];
  return bands;
}
