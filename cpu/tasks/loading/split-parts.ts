import { pagedArray, type Partition } from '../../../engine/partition.ts';
import { blockOf, stopsAt, type TaskHandler, type TaskScope } from '../../handler.ts';
import { pairsOf, valuesOf } from './scatter-pairs.ts';

export const splitPairs: TaskHandler<'split-pairs'> = (scope) => {
  const { partOf, firstRow } = partsOf(scope);
  const chunks = Array.from({ length: scope.params.chunks }, (_, chunk) => ({
    ...pairsOf(scope, chunk),
    ...valuesOf(scope, chunk),
  }));
  const counts = new Int32Array(firstRow.length - 1);
  for (const { rowCodes, rowMap } of chunks)
    for (let k = 0; k < rowCodes.length; k++)
      counts[partOf[rowMap === undefined ? rowCodes[k] : rowMap[rowCodes[k]]]]++;
  const parts = Array.from(counts, (count) =>
    roomFor(
      count,
      chunks.some(({ timestamps }) => timestamps !== undefined),
    ),
  );
  for (const { rowCodes, columnCodes, rowMap, columnMap, values, timestamps } of chunks) {
    for (let k = 0; k < rowCodes.length; k++) {
      const row = rowMap === undefined ? rowCodes[k] : rowMap[rowCodes[k]];
      const part = parts[partOf[row]];
      part.users[part.filled] = row - firstRow[partOf[row]];
      part.items[part.filled] = columnMap === undefined ? columnCodes[k] : columnMap[columnCodes[k]];
      if (part.timestamps && timestamps) part.timestamps[part.filled] = timestamps[k];
      part.values[part.filled++] = values[k];
    }
  }
  return {
    rows: chunks.reduce((sum, { rowCodes }) => sum + rowCodes.length, 0),
    values: { ratings: [...counts] },
    partitions: partitionsOf(parts),
  };
};

export const splitBlock: TaskHandler<'split-block'> = (scope) => {
  const { from, to, firstRow: position } = scope.params;
  const { offsets, indices: columns, values } = blockOf(scope);
  const { partOf, firstRow } = partsOf(scope);
  const counts = new Int32Array(firstRow.length - 1);
  for (let k = offsets[from]; k < offsets[to]; k++) counts[partOf[columns[k]]]++;
  const parts = Array.from(counts, (count) => roomFor(count, false));
  for (let row = from; row < to; row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const number = partOf[columns[k]];
      const part = parts[number];
      part.users[part.filled] = position + row;
      part.items[part.filled] = columns[k] - firstRow[number];
      part.values[part.filled++] = values[k];
    }
  }
  return {
    rows: offsets[to] - offsets[from],
    values: { ratings: [...counts] },
    partitions: partitionsOf(parts),
  };
};

function partsOf(scope: TaskScope): {
  readonly partOf: Uint16Array | Uint32Array;
  readonly firstRow: Int32Array;
} {
  return scope.partition('parts').columns as { partOf: Uint16Array | Uint32Array; firstRow: Int32Array };
}

interface Part {
  readonly users: Uint32Array;
  readonly items: Uint32Array;
  readonly values: Float32Array;
  readonly timestamps: Float64Array | undefined;
  filled: number;
}

function roomFor(count: number, withTimestamps: boolean): Part {
  const numbers = () => pagedArray(Uint32Array, count);
  return {
    users: numbers(),
    items: numbers(),
    values: pagedArray(Float32Array, count),
    timestamps: withTimestamps ? pagedArray(Float64Array, count) : undefined,
    filled: 0,
  };
}

function partitionsOf(parts: readonly Part[]): Record<`${'partCodes' | 'partValues'}.${number}`, Partition> {
  const partitions: Record<`${'partCodes' | 'partValues'}.${number}`, Partition> = {};
  parts.forEach(({ users, items, values, timestamps, filled: rows }, p) => {
    partitions[`partCodes.${p}`] = { layout: 'coded-pairs', rows, columns: { users, items } };
    partitions[`partValues.${p}`] = {
      layout: 'values',
      rows,
      columns: { values, ...(timestamps && { timestamps }) },
    };
  });
  return partitions;
}

export const placeColumns: TaskHandler<'place-columns'> = (scope) => {
  const { from, to, columnStarts, local } = scope.params;
  const { offsets, indices, values } = blockOf(scope);
  const parts = columnStarts.slice(1).map((_, part) => blockOf(scope, `part.${part}`));
  for (let row = from; row < to && !stopsAt(scope, row); row++) {
    let k = offsets[row];
    for (let part = 0; part < parts.length; part++) {
      const target = parts[part];
      const [end, first] = [target.offsets[row + 1], local ? columnStarts[part] : 0];
      for (let place = target.offsets[row]; place < end; place++, k++) {
        target.indices[place] = indices[k] - first;
        target.values[place] = values[k];
      }
    }
  }
  return { rows: offsets[to] - offsets[from] };
};
