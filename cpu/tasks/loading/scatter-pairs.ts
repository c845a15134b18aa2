import type { JsonObject } from '../../../engine/json.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler, TaskScope } from '../../handler.ts';

/** See `count-pairs` of KernelTasks. */
export const countPairs: TaskHandler<'count-pairs'> = (scope) => {
  const { bands, groups, rowBits } = scope.params;
  const counts = sharedArray(Int32Array, groups.length * bands);
  const { placeOf } = bandsOf(scope);
  let [chunk, pairs] = [0, 0];
  for (const [group, chunks] of groups.entries()) {
    const own = counts.subarray(group * bands, (group + 1) * bands);
    for (const end = chunk + chunks; chunk < end && !scope.cancelled(); chunk++) {
      const { rowCodes, rowMap } = pairsOf(scope, chunk);
      countBands(rowCodes, rowMap, placeOf, placesByCode(placeOf, rowMap, rowCodes.length), rowBits, own);
      pairs += rowCodes.length;
    }
  }
  return { rows: pairs, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

function countBands(rowCodes: Uint32Array, rowMap: Uint32Array | undefined, placeOf: Uint32Array, placeOfCode: Uint32Array | undefined, rowBits: number, counts: Int32Array): void {
  for (let k = 0; k < rowCodes.length; k++) {
    const code = rowCodes[k];
    counts[(placeOfCode === undefined ? placeOf[rowMap === undefined ? code : rowMap[code]] : placeOfCode[code]) >>> rowBits]++;
  }
}

/** See `scatter-pairs` of KernelTasks. */
export const scatterPairs: TaskHandler<'scatter-pairs'> = (scope) => {
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { placeOf } = bandsOf(scope);
  const target = keysOf(scope.partition('block'));
  let pairs = 0;
  for (let chunk = 0; chunk < scope.params.chunks && !scope.cancelled(); chunk++) {
    const coded = pairsOf(scope, chunk);
    const { values, timestamps } = valuesOf(scope, chunk);
    let source = new Uint32Array(values.buffer, values.byteOffset, values.length);
    if (scope.params.firstRow !== undefined) {
      const first = scope.params.firstRow + pairs;
      const rowData = scope.partition('rowData').columns as { ratings: Float32Array; timestamps: Float64Array };
      rowData.ratings.set(values, first);
      rowData.timestamps.set(timestamps as Float64Array, first);
      source = Uint32Array.from({ length: values.length }, (_, k) => first + k);
    }
    scatter(coded, source, placeOf, placesByCode(placeOf, coded.rowMap, values.length), scope.params, cursors, target.keys, target.bits);
    pairs += values.length;
  }
  return { rows: pairs };
};

function scatter(
  { rowCodes, columnCodes, rowMap, columnMap }: Pairs,
  source: Uint32Array,
  placeOf: Uint32Array,
  placeOfCode: Uint32Array | undefined,
  { rowBits, columnBits }: { readonly rowBits: number; readonly columnBits: number },
  cursors: Int32Array,
  keys: Uint32Array,
  bits: Uint32Array,
): void {
  const rowMask = 2 ** rowBits - 1;
  for (let k = 0; k < rowCodes.length; k++) {
    const code = rowCodes[k];
    const row = placeOfCode === undefined ? placeOf[rowMap === undefined ? code : rowMap[code]] : placeOfCode[code];
    const place = cursors[row >>> rowBits]++;
    keys[place] = ((row & rowMask) << columnBits) | (columnMap === undefined ? columnCodes[k] : columnMap[columnCodes[k]]);
    bits[place] = source[k];
  }
}

/** The bands that ratings are scattered to. */
export function bandsOf(scope: TaskScope): { readonly placeOf: Uint32Array; readonly firstRow: Int32Array } {
  return scope.partition('bands').columns as { placeOf: Uint32Array; firstRow: Int32Array };
}

/** The arrays of a block that hold keys, then columns, and values as their bits, so that ratings and row numbers go alike. */
export function keysOf({ columns }: Partition): { readonly offsets: Int32Array; readonly keys: Uint32Array; readonly bits: Uint32Array } {
  const { offsets, indices, values } = columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  return { offsets, keys: indices, bits: new Uint32Array(values.buffer, values.byteOffset, values.length) };
}

/** The place of each code, which saves a rating one look-up behind another; undefined where a map of many more codes than ratings is not worth it. */
function placesByCode(placeOf: Uint32Array, rowMap: Uint32Array | undefined, ratings: number): Uint32Array | undefined {
  if (rowMap === undefined || rowMap.length > 2 * ratings) return undefined;
  const places = new Uint32Array(rowMap.length);
  for (let code = 0; code < places.length; code++) places[code] = placeOf[rowMap[code]];
  return places;
}

/** The codes of a chunk, those of rows and those of columns, and their maps to positions where they are not positions. */
interface Pairs {
  readonly rowCodes: Uint32Array;
  readonly columnCodes: Uint32Array;
  readonly rowMap: Uint32Array | undefined;
  readonly columnMap: Uint32Array | undefined;
}

export function pairsOf(scope: TaskScope<{ readonly by: 'users' | 'items' } & JsonObject>, chunk: number): Pairs {
  const codes = scope.partition(`codes.${chunk}`).columns as { users: Uint32Array; items: Uint32Array };
  const [rowCodes, columnCodes] = scope.params.by === 'users' ? [codes.users, codes.items] : [codes.items, codes.users];
  return { rowCodes, columnCodes, rowMap: mapOf(scope, 'rowMap', chunk), columnMap: mapOf(scope, 'columnMap', chunk) };
}

export function valuesOf(scope: TaskScope, chunk: number): { readonly values: Float32Array; readonly timestamps?: Float64Array } {
  return scope.partition(`values.${chunk}`).columns as { values: Float32Array; timestamps?: Float64Array };
}

function mapOf(scope: TaskScope, name: string, chunk: number): Uint32Array | undefined {
  const input = `${name}.${chunk}`;
  return scope.hasInput(input) ? (scope.partition(input).columns.map as Uint32Array) : undefined;
}
