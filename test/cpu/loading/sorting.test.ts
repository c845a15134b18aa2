/** Ratings scattered to bands and sorted there, against a plain sort. */
import { describe, expect, it } from 'vitest';
import { LoadingMemory } from '../../../cpu/tasks/loading/loading-memory.ts';
import {
  countByBand,
  scatterByBand,
  tableWords,
  writerOf,
} from '../../../cpu/tasks/loading/scatter-by-band.ts';
import { countColumns, scatterColumns } from '../../../cpu/tasks/loading/scatter-pairs.ts';
import { sortBands } from '../../../cpu/tasks/loading/sort-bands.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { TestMemory } from '../scope.ts';

const random = new CounterRandom(11);
const test = new TestMemory('simd', 1);
const memory = LoadingMemory.own();

function shared(values: Iterable<number>): Uint32Array {
  const all = Uint32Array.from(values);
  const array = sharedArray(Uint32Array, all.length);
  array.set(all);
  return array;
}

/** Row pointers of rows with these ratings, and bands of `rowsOfBand` rows each. */
function banded(rowOf: Uint32Array, rows: number, rowsOfBand: number, columns: number) {
  const offsets = sharedArray(Int32Array, rows + 1);
  for (const row of rowOf) offsets[row + 1]++;
  for (let row = 0; row < rows; row++) offsets[row + 1] += offsets[row];
  const columnBits = 32 - Math.clz32(Math.max(0, columns - 1));
  const rowBits = Math.min(16, 32 - columnBits);
  const count = Math.ceil(rows / rowsOfBand);
  const firstRow = sharedArray(Int32Array, count + 1);
  for (let band = 0; band <= count; band++) firstRow[band] = Math.min(rows, band * rowsOfBand);
  const placeOf = shared(
    Array.from(
      { length: rows },
      (_, row) => Math.floor(row / rowsOfBand) * 2 ** rowBits + (row % rowsOfBand),
    ),
  );
  const block: Partition = {
    layout: 'rating-block',
    rows,
    columns: {
      offsets,
      indices: sharedArray(Uint32Array, rowOf.length),
      values: sharedArray(Float32Array, rowOf.length),
    },
  };
  return {
    offsets,
    columnBits,
    rowBits,
    count,
    firstRow,
    bands: { layout: 'row-bands', rows, columns: { placeOf, firstRow } },
    placeOf,
    block,
  };
}

/** The numbers of the ratings by row, then by column, then in the original order. */
function inOrder(rowOf: ArrayLike<number>, columnOf: ArrayLike<number>): number[] {
  return Array.from({ length: rowOf.length }, (_, k) => k).sort(
    (left, right) => rowOf[left] - rowOf[right] || columnOf[left] - columnOf[right] || left - right,
  );
}

/** Compares large arrays faster than `toEqual`. */
function isSame(array: Uint32Array, expected: Iterable<number>): boolean {
  return (
    Buffer.compare(
      Buffer.from(array.buffer, array.byteOffset, array.byteLength),
      Buffer.from(Uint32Array.from(expected).buffer),
    ) === 0
  );
}

const columnsOf = ({ columns }: Partition) => columns.indices as Uint32Array;
const bitsOf = ({ columns: { values } }: Partition) =>
  new Uint32Array(values.buffer, values.byteOffset, values.length);

describe('ratings by bands', () => {
  it.each([
    { ratings: 0, rows: 3, columns: 4, rowsOfBand: 2 },
    { ratings: 1, rows: 1, columns: 1, rowsOfBand: 1 },
    { ratings: 3, rows: 2, columns: 1, rowsOfBand: 2 },
    { ratings: 11, rows: 3, columns: 1, rowsOfBand: 1 },
    { ratings: 5, rows: 40, columns: 7, rowsOfBand: 3 },
    { ratings: 900, rows: 30, columns: 1000, rowsOfBand: 1 },
    { ratings: 32_769, rows: 500, columns: 3000, rowsOfBand: 70 },
    { ratings: 2 ** 18 + 1, rows: 70_000, columns: 60_000, rowsOfBand: 65_536 },
    { ratings: 2 ** 18, rows: 9, columns: 2 ** 31, rowsOfBand: 2 },
  ])(
    '$ratings ratings of $rows rows and $columns columns, bands of $rowsOfBand rows',
    ({ ratings, rows, columns, rowsOfBand }) => {
      const rowOf = shared(Array.from({ length: ratings }, (_, k) => random.below(2 * k, rows)));
      const columnOf = shared(Array.from({ length: ratings }, (_, k) => random.below(2 * k + 1, columns)));
      const bits = shared(Array.from({ length: ratings }, (_, k) => k));
      const to = banded(rowOf, rows, rowsOfBand, columns);
      const counts = new Int32Array(to.count);
      // Codes are rows already. Tables of places are too long to copy where rows are more than twice the
      // ratings.
      const coded = { codes: rowOf, maps: [to.placeOf] };
      expect(tableWords(coded) > 0).toBe(rows <= 2 * ratings);
      countByBand(memory, coded, to.rowBits, counts);
      expect([...counts]).toEqual(
        Array.from(counts, (_, band) => to.offsets[to.firstRow[band + 1]] - to.offsets[to.firstRow[band]]),
      );
      const cursors = Int32Array.from(counts, (_, band) => to.offsets[to.firstRow[band]]);
      const plain = { codes: columnOf, maps: [] };
      scatterByBand(
        memory,
        {
          rows: coded,
          columns: { words: tableWords(plain), writer: (at) => writerOf(memory, plain, at) },
          bits,
        },
        to,
        cursors,
        { keys: columnsOf(to.block), bits: bitsOf(to.block) },
      );
      expect([...cursors]).toEqual(Array.from(cursors, (_, band) => to.offsets[to.firstRow[band + 1]]));
      const { values } = sortBands(
        test.scope(
          { from: 0, to: to.count, columnBits: to.columnBits, order: 'by-column' },
          { bands: to.bands, block: to.block },
          {},
        ),
      );
      const order = inOrder(rowOf, columnOf);
      expect(
        isSame(
          columnsOf(to.block),
          order.map((k) => columnOf[k]),
        ),
      ).toBe(true);
      expect(isSame(bitsOf(to.block), order)).toBe(true);
      const repeated = order.filter(
        (k, at) => at > 0 && rowOf[order[at - 1]] === rowOf[k] && columnOf[order[at - 1]] === columnOf[k],
      );
      expect(values).toEqual({
        extra: repeated.length,
        row: repeated.length > 0 ? rowOf[repeated[0]] : -1,
        column: repeated.length > 0 ? columnOf[repeated[0]] : -1,
      });

      // Its columns as rows, in four groups. With very many columns the test makes no row pointers.
      if (columns > 2 ** 20) return;
      const from = shared(order.map((k) => rowOf[k]));
      const back = banded(columnsOf(to.block), columns, Math.max(1, Math.ceil(columns / 5)), rows);
      const starts = Array.from({ length: 5 }, (_, group) => Math.floor((rows * group) / 4));
      const found = countColumns(
        test.scope(
          { starts, bands: back.count, rowBits: back.rowBits },
          { bands: back.bands, block: to.block },
          {},
        ),
      ).partitions?.counts.columns.counts as Int32Array;
      const next = Int32Array.from({ length: back.count }, (_, band) => back.offsets[back.firstRow[band]]);
      for (let group = 0; group < 4; group++) {
        const own = sharedArray(Int32Array, back.count);
        own.set(next);
        const params = {
          from: starts[group],
          to: starts[group + 1],
          rowBits: back.rowBits,
          columnBits: back.columnBits,
        };
        scatterColumns(
          test.scope(
            params,
            {
              bands: back.bands,
              block: to.block,
              transposed: back.block,
              cursors: { layout: 'cursors', rows: own.length, columns: { cursors: own } },
            },
            {},
          ),
        );
        for (let band = 0; band < back.count; band++) next[band] += found[group * back.count + band];
      }
      sortBands(
        test.scope(
          { from: 0, to: back.count, columnBits: back.columnBits, order: 'kept' },
          { bands: back.bands, block: back.block },
          {},
        ),
      );
      const columnOrder = inOrder(columnsOf(to.block), from);
      expect(
        isSame(
          columnsOf(back.block),
          columnOrder.map((k) => from[k]),
        ),
      ).toBe(true);
      expect(
        isSame(
          bitsOf(back.block),
          columnOrder.map((k) => bitsOf(to.block)[k]),
        ),
      ).toBe(true);
    },
  );

  it.each([9, 700])('go by maps from codes to positions, which may have %i codes', (codes) => {
    const [map, places] = [
      shared(Array.from({ length: codes }, (_, code) => (code * 7 + 3) % 20)),
      shared(Array.from({ length: 20 }, (_, row) => 100 - row)),
    ];
    const own = {
      codes: shared(Array.from({ length: 50 }, (_, k) => random.below(k, codes))),
      maps: [map, places],
    };
    const [at, table] = memory.layOut(50, tableWords(own));
    writerOf(memory, own, table)(10, 50, at);
    expect([...memory.words(at, 40)]).toEqual(
      Array.from(own.codes.subarray(10), (code) => places[map[code]]),
    );
  });
});
