/** Sorting and the first rows, compared with DuckDB's ORDER BY. FACTORFLOW_SEED draws other rows. */
import {
  Dictionary,
  Field,
  Int32,
  Int8,
  List,
  type RecordBatch,
  RecordBatch as Batch,
  Schema,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { expect, it } from 'vitest';
import type { SortKey } from '../../../engine/sorting/sort-keys.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { SortRows } from '../../../operators/dataflow/sort-rows.ts';
import { TopRows } from '../../../operators/dataflow/top-rows.ts';
import { operatorFrom, portableOf } from '../../../operators/pipeline/operator-chain.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { batchOf, type Cell, cellsOf } from '../../engine/expressions/evaluated.ts';
import {
  batchOfCells,
  type Cells,
  drawCells,
  duckTable,
  type RandomColumns,
  randomColumns,
} from '../../engine/expressions/random-rows.ts';
import { sampleSize } from '../../support/deep.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { drawnNumbers } from '../../support/drawn-numbers.ts';

const random = drawnNumbers();
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];

const session = await cpuSession({ workers: 1 });

const titles = ['The Matrix', 'The Matrix Reloaded', 'The Matrix Revolutions', 'Alien', 'Aliens', 'Up'];
const drawn = randomColumns(random);
const columns: RandomColumns = {
  ...drawn,
  title: { ...drawn.t, draw: () => pick(titles) },
  skewed: { ...drawn.i, draw: () => (random() < 0.5 ? 7 : Math.floor(random() * 50)) },
};

/** Batches of these rows, cut at random, some of them empty. */
function cut(whole: RecordBatch): RecordBatch[] {
  const ends = Array.from({ length: Math.floor(random() * 6) }, () => Math.floor(random() * whole.numRows));
  const all = [0, ...ends.sort((a, b) => a - b), whole.numRows];
  return all.slice(1).map((end, i) => whole.slice(all[i], end));
}

async function run(
  operator: Operator,
  batches: readonly RecordBatch[],
  schema: Schema,
): Promise<RecordBatch[]> {
  const [made] = await Promise.all(portableOf([operator]).map(operatorFrom));
  const input = batchStream(
    schema,
    (async function* () {
      yield* batches;
    })(),
  );
  const found: RecordBatch[] = [];
  for await (const batch of made.execute(input, session.context())) found.push(batch);
  return found;
}

const cells = (batches: readonly RecordBatch[], column: number): Cell[] =>
  batches.flatMap(({ data }) => cellsOf(data.children[column]));

const sqlOf = ({ column, descending = false, nulls }: SortKey) =>
  `"${column}" ${descending ? 'DESC' : 'ASC'} NULLS ${nulls ?? (descending ? 'LAST' : 'FIRST')}`;

/** A random table with the row's number as its first column, in DuckDB too. */
async function drawTable(rows: number): Promise<RecordBatch> {
  const own = drawCells(columns, rows, () => random() < 0.15);
  const connection = await duckdb();
  for (const statement of duckTable('unsorted', columns, own, 'row number')) await connection.run(statement);
  return withNumbers(own, rows);
}

function withNumbers(own: Cells, rows: number): RecordBatch {
  const { data, schema } = batchOfCells(columns, own);
  const numbers = vectorFromArray(
    Array.from({ length: rows }, (_, row) => row),
    new Int32(),
  ).data[0];
  return batchOf({
    'row number': numbers,
    ...Object.fromEntries(schema.fields.map(({ name }, i) => [name, data.children[i]])),
  });
}

it('sorts and takes the first rows as DuckDB does, for any cut into batches and splits', async () => {
  for (let table = 0; table < sampleSize(15); table++) {
    const rows = pick([1, 60, 400, 900]);
    const whole = await drawTable(rows);
    const keys = Array.from({ length: 1 + Math.floor(random() * 3) }, (): SortKey => ({
      column: pick(Object.keys(columns)),
      descending: random() < 0.5,
      nulls: pick([undefined, 'first', 'last']),
    }));
    const name = keys.map(sqlOf).join(', ');
    const found = await duckRows(`SELECT "row number" FROM unsorted ORDER BY ${name}, "row number"`);
    const order = found.map(([row]) => Number(row));

    const sorted = await run(new SortRows(keys), cut(whole), whole.schema);
    expect(cells(sorted, 0), name).toEqual(order);
    for (let column = 1; column < whole.numCols; column++) {
      const given = cellsOf(whole.data.children[column]);
      expect(cells(sorted, column), name).toEqual(order.map((row) => given[row]));
    }

    const first = pick([0, 1, 7, 100]);
    const splits = cut(whole);
    const partial = new TopRows(keys, first, 'split');
    const tops = await Promise.all(splits.map((split) => run(partial, cut(split), whole.schema)));
    const top = await run(new TopRows(keys, first), tops.flat(), whole.schema);
    expect(cells(top, 0), `${name} limit ${first}`).toEqual(order.slice(0, first));
  }
});

it('takes the first of many integers of 64 bits, signed and unsigned, alone and before another key', async () => {
  const rows = 40_000;
  const row = Int32Array.from({ length: rows }, (_, n) => n);
  const drawn = () => BigInt(Math.floor(random() * 5)) * 2n ** 32n + BigInt(Math.floor(random() * 2 ** 32));
  const signed = BigInt64Array.from({ length: rows }, () => drawn() * (random() < 0.5 ? 1n : -1n));
  const unsigned = BigUint64Array.from(signed, (value) => BigInt.asUintN(64, value));
  const few = signed.map((value) => value / 2n ** 32n);
  for (const given of [signed, unsigned, few]) {
    const x = vectorFromArray(given).data[0];
    const whole = batchOf({
      row: vectorFromArray(row).data[0],
      x,
      y: vectorFromArray(row.map((n) => -n)).data[0],
    });
    for (const descending of [false, true]) {
      for (const more of [[], [{ column: 'y' }]]) {
        const sign = descending ? -1 : 1;
        const second = more.length > 0 ? -1 : 1;
        const order = [...row].sort(
          (a, b) => sign * Number(given[a] > given[b] ? 1 : given[a] < given[b] ? -1 : 0) || second * (a - b),
        );
        const found = await run(
          new TopRows([{ column: 'x', descending }, ...more], 10),
          cut(whole),
          whole.schema,
        );
        expect(cells(found, 0)).toEqual(order.slice(0, 10));
      }
    }
  }
});

it('takes the first of many rows, in any order of the input', async () => {
  const rows = 60_000;
  const values = Int32Array.from({ length: rows }, () => Math.floor(random() * 3000));
  for (const given of [values, values.toSorted(), values.toSorted().toReversed()]) {
    const numbers = Int32Array.from({ length: rows }, (_, row) => row);
    const whole = batchOf({ row: vectorFromArray(numbers).data[0], x: vectorFromArray(given).data[0] });
    const batches = Array.from({ length: 20 }, (_, i) => whole.slice(i * 3000, (i + 1) * 3000));
    for (const descending of [false, true]) {
      const sign = descending ? -1 : 1;
      const order = [...numbers].sort((a, b) => sign * (given[a] - given[b]) || a - b);
      for (const first of [10, 5000]) {
        const found = await run(new TopRows([{ column: 'x', descending }], first), batches, whole.schema);
        expect(cells(found, 0)).toEqual(order.slice(0, first));
      }
    }
  }
});

it('gives batches of at most 65,536 rows, and none without rows', async () => {
  const whole = batchOf({
    x: vectorFromArray(Int32Array.from({ length: 200_000 }, (_, row) => -row)).data[0],
  });
  const found = await run(new SortRows([{ column: 'x' }]), [whole], whole.schema);
  expect(found.map(({ numRows }) => numRows)).toEqual([65_536, 65_536, 65_536, 3392]);
  expect(cells(found, 0)).toEqual(Array.from({ length: 200_000 }, (_, row) => row - 199_999));
  expect(await run(new SortRows([{ column: 'x' }]), [whole.slice(0, 0)], whole.schema)).toEqual([]);
});

it('joins dictionaries of batches, and carries lists', async () => {
  const type = new Dictionary(new Utf8(), new Int8());
  const listType = new List(new Field('item', new Int32()));
  const schema = new Schema([new Field('word', type, true), new Field('list', listType, true)]);
  const made = (words: (string | null)[], lists: number[][]) => {
    const { data } = batchOf({
      word: vectorFromArray(words, type).data[0],
      list: vectorFromArray(lists, listType).data[0],
    });
    return new Batch(schema, data);
  };
  const batches = [made(['pear', null], [[1], [2, 3]]), made(['fig', 'pear', 'apple'], [[4], [], [5, 6, 7]])];
  const found = await run(new SortRows([{ column: 'word', descending: true }]), batches, schema);
  expect(cells(found, 0)).toEqual(['pear', 'pear', 'fig', 'apple', null]);
  expect(found[0].getChildAt(1)?.toArray().map(String)).toEqual(['[1]', '[]', '[4]', '[5,6,7]', '[2,3]']);
});

it('describes its keys, and refuses none, unknown columns and lists', () => {
  const keys: SortKey[] = [{ column: 'a' }, { column: 'b', descending: true, nulls: 'first' }];
  expect(new SortRows(keys).describe()).toEqual({ by: ['a', 'b desc nulls first'] });
  expect(new TopRows(keys, 3, 'split').describe()).toMatchObject({ rows: 3, of: 'each split' });
  expect(() => new SortRows([])).toThrow('sorting takes one key or more');
  expect(() => new TopRows([], 1)).toThrow('sorting takes one key or more');
  const { schema } = batchOf({ a: vectorFromArray([[1]]).data[0], b: vectorFromArray([1]).data[0] });
  expect(() => new SortRows(keys).outputSchema(schema)).toThrow(/sorted by the column "a" of type List/);
  expect(() => new SortRows([{ column: 'c' }]).outputSchema(schema)).toThrow(/The columns are: a, b/);
  expect(new SortRows(keys).requiredColumns(['c', 'b'])).toEqual(['c', 'b', 'a']);
});
