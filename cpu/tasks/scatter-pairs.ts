import { sharedArray } from '../../engine/partition.ts';
import type { TaskHandler, TaskScope } from '../handler.ts';

/** See CountPairsTask. */
export const countPairs: TaskHandler = (scope) => {
  const counts = sharedArray(Int32Array, scope.params.rows as number);
  let pairs = 0;
  for (let chunk = 0; chunk < (scope.params.chunks as number) && !scope.cancelled(); chunk++) {
    const { rowCodes, rowMap } = chunkOf(scope, chunk);
    if (rowMap) for (let k = 0; k < rowCodes.length; k++) counts[rowMap[rowCodes[k]]]++;
    else for (let k = 0; k < rowCodes.length; k++) counts[rowCodes[k]]++;
    pairs += rowCodes.length;
  }
  return { rows: pairs, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

/** See ScatterPairsTask. */
export const scatterPairs: TaskHandler = (scope) => {
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { columns } = scope.partition('block');
  const indices = columns.indices as Uint32Array;
  const values = columns.values as Float32Array | Uint32Array;
  let pairs = 0;
  for (let chunk = 0; chunk < (scope.params.chunks as number) && !scope.cancelled(); chunk++) {
    const { rowCodes, columnCodes, rowMap, columnMap, ratings } = chunkOf(scope, chunk);
    for (let k = 0; k < rowCodes.length; k++) {
      const place = cursors[rowMap ? rowMap[rowCodes[k]] : rowCodes[k]]++;
      indices[place] = columnMap ? columnMap[columnCodes[k]] : columnCodes[k];
      values[place] = ratings[k];
    }
    pairs += rowCodes.length;
  }
  return { rows: pairs };
};

interface Chunk {
  readonly rowCodes: Uint32Array;
  readonly columnCodes: Uint32Array;
  readonly rowMap: Uint32Array | undefined;
  readonly columnMap: Uint32Array | undefined;
  readonly ratings: Float32Array | Uint32Array;
}

function chunkOf(scope: TaskScope, chunk: number): Chunk {
  const codes = scope.partition(`codes.${chunk}`).columns as { users: Uint32Array; items: Uint32Array };
  const map = (name: string) =>
    scope.hasInput(`${name}.${chunk}`) ? (scope.partition(`${name}.${chunk}`).columns.map as Uint32Array) : undefined;
  const byUsers = scope.params.by === 'users';
  return {
    rowCodes: byUsers ? codes.users : codes.items,
    columnCodes: byUsers ? codes.items : codes.users,
    rowMap: map('rowMap'),
    columnMap: map('columnMap'),
    ratings: scope.hasInput(`values.${chunk}`)
      ? (scope.partition(`values.${chunk}`).columns.values as Float32Array | Uint32Array)
      : new Float32Array(0),
  };
}
