import { sharedArray } from '../../../engine/partition.ts';
import type { ScopeOf, TaskHandler, TaskScope } from '../../handler.ts';
import { scatterTarget } from './scatter-target.ts';

/** See `count-pairs` of KernelTasks. */
export const countPairs: TaskHandler<'count-pairs'> = (scope) => {
  const counts = sharedArray(Int32Array, scope.params.bands);
  let pairs = 0;
  for (let chunk = 0; chunk < scope.params.chunks && !scope.cancelled(); chunk++) {
    const { rowCodes, rowMap } = rowsOf(scope, chunk);
    const bandOfCode = bandsByCode(scope, rowMap);
    for (let k = 0; k < rowCodes.length; k++) counts[bandOfCode[rowCodes[k]]]++;
    pairs += rowCodes.length;
  }
  return { rows: pairs, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

/** See `scatter-pairs` of KernelTasks. */
export const scatterPairs: TaskHandler<'scatter-pairs'> = (scope) => {
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { rows, indices, bits } = scatterTarget(scope);
  let pairs = 0;
  for (let chunk = 0; chunk < scope.params.chunks && !scope.cancelled(); chunk++) {
    const { rowCodes, columnCodes, rowMap } = rowsOf(scope, chunk);
    const bandOfCode = bandsByCode(scope, rowMap);
    const columnMap = mapOf(scope, 'columnMap', chunk);
    const values = scope.partition(`values.${chunk}`).columns.values;
    const valueBits = new Uint32Array(values.buffer, values.byteOffset, rowCodes.length);
    for (let k = 0; k < rowCodes.length; k++) {
      const place = cursors[bandOfCode[rowCodes[k]]]++;
      rows[place] = rowMap === undefined ? rowCodes[k] : rowMap[rowCodes[k]];
      indices[place] = columnMap === undefined ? columnCodes[k] : columnMap[columnCodes[k]];
      bits[place] = valueBits[k];
    }
    pairs += rowCodes.length;
  }
  return { rows: pairs };
};

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
function bandsByCode(scope: TaskScope, rowMap: Uint32Array | undefined): Uint16Array {
  const bandOf = scope.partition('bands').columns.bandOf as Uint16Array;
  if (rowMap === undefined) return bandOf;
  const bands = new Uint16Array(rowMap.length);
  for (let code = 0; code < bands.length; code++) bands[code] = bandOf[rowMap[code]];
  return bands;
}
