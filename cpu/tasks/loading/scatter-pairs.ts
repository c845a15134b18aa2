import type { JsonObject } from '../../../engine/json.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { blockOf, type TaskHandler, type TaskScope } from '../../handler.ts';
import { LoadingMemory } from './loading-memory.ts';
import {
  type Coded,
  countByBand,
  scatterByBand,
  tableWords,
  writerOf,
  type WriteNumbers,
} from './scatter-by-band.ts';

export const countPairs: TaskHandler<'count-pairs'> = (scope) => {
  const { bands, groups, rowBits } = scope.params;
  const counts = sharedArray(Int32Array, groups.length * bands);
  const { placeOf } = bandsOf(scope);
  const memory = LoadingMemory.own();
  let [chunk, pairs] = [0, 0];
  for (const [group, chunks] of groups.entries()) {
    const own = counts.subarray(group * bands, (group + 1) * bands);
    for (const end = chunk + chunks; chunk < end && !scope.cancelled(); chunk++) {
      const { rowCodes, rowMap } = pairsOf(scope, chunk);
      countByBand(memory, placesOf(rowCodes, rowMap, placeOf), rowBits, own);
      pairs += rowCodes.length;
    }
  }
  return {
    rows: pairs,
    partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } },
  };
};

export const scatterPairs: TaskHandler<'scatter-pairs'> = (scope) => {
  // A private copy, since inputs must not be written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { placeOf } = bandsOf(scope);
  const target = keysOf(scope);
  const memory = LoadingMemory.own();
  let pairs = 0;
  for (let chunk = 0; chunk < scope.params.chunks && !scope.cancelled(); chunk++) {
    const { rowCodes, columnCodes, rowMap, columnMap } = pairsOf(scope, chunk);
    const { values, timestamps } = valuesOf(scope, chunk);
    let bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    if (scope.params.firstRow !== undefined) {
      const first = scope.params.firstRow + pairs;
      const rowData = scope.partition('rowData').columns as {
        ratings: Float32Array;
        timestamps: Float64Array;
      };
      rowData.ratings.set(values, first);
      rowData.timestamps.set(timestamps as Float64Array, first);
      bits = Uint32Array.from({ length: values.length }, (_, k) => first + k);
    }
    const coded: Coded = { codes: columnCodes, maps: columnMap === undefined ? [] : [columnMap] };
    const columns = {
      words: tableWords(coded),
      writer: (address: number) => writerOf(memory, coded, address),
    };
    scatterByBand(
      memory,
      { rows: placesOf(rowCodes, rowMap, placeOf), columns, bits },
      scope.params,
      cursors,
      target,
    );
    pairs += values.length;
  }
  return { rows: pairs };
};

function placesOf(codes: Uint32Array, rowMap: Uint32Array | undefined, placeOf: Uint32Array): Coded {
  return { codes, maps: rowMap === undefined ? [placeOf] : [rowMap, placeOf] };
}

/** The bands that ratings are scattered to. */
export function bandsOf(scope: TaskScope): { readonly placeOf: Uint32Array; readonly firstRow: Int32Array } {
  return scope.partition('bands').columns as { placeOf: Uint32Array; firstRow: Int32Array };
}

/**
 * The arrays of a block during sorting: `keys` in the place of column indices, and `bits`, the values as u32.
 * So ratings and row numbers are handled alike.
 */
export function keysOf(
  scope: TaskScope,
  block?: 'transposed',
): {
  readonly offsets: Int32Array;
  readonly keys: Uint32Array;
  readonly bits: Uint32Array;
} {
  const { offsets, indices, values } = blockOf(scope, block);
  return { offsets, keys: indices, bits: new Uint32Array(values.buffer, values.byteOffset, values.length) };
}

/**
 * The row and column codes of a chunk, with maps from codes to positions; a map is undefined if its codes are
 * positions.
 */
interface Pairs {
  readonly rowCodes: Uint32Array;
  readonly columnCodes: Uint32Array;
  readonly rowMap: Uint32Array | undefined;
  readonly columnMap: Uint32Array | undefined;
}

export function pairsOf(
  scope: TaskScope<{ readonly by: 'users' | 'items' } & JsonObject>,
  chunk: number,
): Pairs {
  const codes = scope.partition(`codes.${chunk}`).columns as { users: Uint32Array; items: Uint32Array };
  const [rowCodes, columnCodes] =
    scope.params.by === 'users' ? [codes.users, codes.items] : [codes.items, codes.users];
  return {
    rowCodes,
    columnCodes,
    rowMap: mapOf(scope, 'rowMap', chunk),
    columnMap: mapOf(scope, 'columnMap', chunk),
  };
}

export function valuesOf(
  scope: TaskScope,
  chunk: number,
): { readonly values: Float32Array; readonly timestamps?: Float64Array } {
  return scope.partition(`values.${chunk}`).columns as { values: Float32Array; timestamps?: Float64Array };
}

function mapOf(scope: TaskScope, name: string, chunk: number): Uint32Array | undefined {
  const input = `${name}.${chunk}`;
  return scope.hasInput(input) ? (scope.partition(input).columns.map as Uint32Array) : undefined;
}

export const countColumns: TaskHandler<'count-columns'> = (scope) => {
  const { bands, starts, rowBits } = scope.params;
  const { offsets, keys: columns } = keysOf(scope);
  const { placeOf } = bandsOf(scope);
  const counts = sharedArray(Int32Array, (starts.length - 1) * bands);
  const memory = LoadingMemory.own();
  const [first, end] = [offsets[starts[0]], offsets[starts[starts.length - 1]]];
  for (let group = 0; group + 1 < starts.length && !scope.cancelled(); group++) {
    const codes = columns.subarray(offsets[starts[group]], offsets[starts[group + 1]]);
    countByBand(
      memory,
      { codes, maps: [placeOf] },
      rowBits,
      counts.subarray(group * bands, (group + 1) * bands),
    );
  }
  return {
    rows: end - first,
    partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } },
  };
};

export const scatterColumns: TaskHandler<'scatter-columns'> = (scope) => {
  const { offsets, keys: columns, bits } = keysOf(scope);
  const { placeOf } = bandsOf(scope);
  // A private copy, since inputs must not be written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { from, to } = scope.params;
  const [first, end] = [offsets[from], offsets[to]];
  const memory = LoadingMemory.own();
  /**
   * Returns a function that writes the row of each rating, for one piece of consecutive ratings after the
   * other. It continues at the last row of the previous piece.
   */
  const writer = (address: number): WriteNumbers => {
    memory
      .words(address, to + 1 - from)
      .set(new Uint32Array(offsets.buffer, offsets.byteOffset + 4 * from, to + 1 - from));
    let row = from;
    return (start, stop, at) =>
      void (row = memory.kernels.numberRows(
        address + 4 * (row - from),
        row,
        first + start,
        first + stop,
        at,
      ));
  };
  const rows = { codes: columns.subarray(first, end), maps: [placeOf] };
  scatterByBand(
    memory,
    { rows, columns: { words: to + 1 - from, writer }, bits: bits.subarray(first, end) },
    scope.params,
    cursors,
    keysOf(scope, 'transposed'),
  );
  return { rows: end - first };
};
