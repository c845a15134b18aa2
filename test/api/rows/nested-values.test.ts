/** Lists and structs in expressions and operators, compared with DuckDB. */
import {
  Data,
  Dictionary,
  Field,
  Int32,
  LargeList,
  LargeUtf8,
  makeData,
  Null,
  RecordBatch,
  vectorFromArray,
  Utf8,
} from 'apache-arrow';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { col, collectList, count, expr, first, functions, sum } from '../../../index.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const { elementAt, field, listLength, split } = functions;
const session = await cpuSession({ workers: 1 });
const file = join(temporaryFolder(), 'nested.parquet');
const duck = await duckdb();
await duck.run(`copy (select
    i,
    case when i % 4 = 0 then null else range(i % 5) end as g,
    case when i % 3 = 0 then null else {a: i, b: {c: 'x' || i, d: [i, null]}} end as s,
    [{x: i, y: 'a'}] as ls,
    i || case when i % 2 = 0 then '|é' else '||' end as t,
    uuid() as u
  from range(40) r(i)) to '${file}' (row_group_size 2048)`);
const rows = session.read.parquet(file);

/** Rows as texts, in which DuckDB's and ours are alike. */
const plain = (values: unknown) =>
  JSON.stringify(values, (_, value: unknown) =>
    typeof value === 'object' && value !== null && 'items' in value
      ? value.items
      : typeof value === 'bigint'
        ? Number(value)
        : value,
  );

const sameAsDuck: readonly (readonly [own: string, duck: string])[] = [
  ['elementAt(g, 2)', 'g[2]'],
  ['elementAt(g, -1)', 'g[-1]'],
  ['elementAt(g, i - 20)', 'g[i - 20]'],
  ['elementAt(g, null)', 'null'],
  ['listLength(g)', 'len(g)'],
  ["split(t, '|')", "string_split(t, '|')"],
  ["split(t, '')", "string_split(t, '')"],
  ["split(splitPart(t, '|', 2), '')", "string_split(split_part(t, '|', 2), '')"],
  ["elementAt(split(t, '|'), 2)", "string_split(t, '|')[2]"],
  ["elementAt(split('a,b', ','), i)", "(string_split('a,b', ','))[i]"],
  ["split(null, ',')", 'null'],
  ['s.a', 's.a'],
  ['s.b.c', 's.b.c'],
  ['"s".`b`."d"', 's.b.d'],
  ['elementAt(s.b.d, 1) + s.a', 's.b.d[1] + s.a'],
  ["field(elementAt(ls, 1), 'y') || s.b.c", 'ls[1].y || s.b.c'],
  ['case when s.a > 7 then s.b.c end', 'case when s.a > 7 then s.b.c end'],
];

it.each(sameAsDuck)('%s', async (own, other) => {
  const found = await rows.select(expr(own).as('x')).toArray();
  const expected = await duckRows(`select ${other} from '${file}' order by i`);
  expect(plain(found.map(({ x }) => x))).toBe(plain(expected.map(([x]) => x)));
});

it('a null of a dictionary column has no parts', async () => {
  const words = vectorFromArray(['a,b', null, '', 'a,b', null], new Dictionary(new Utf8(), new Int32()));
  const parts = session.from([new RecordBatch({ t: words.data[0] })]).select(expr("split(t, ',')").as('x'));
  const found = (await parts.toArray()).map(({ x }) => x);
  expect(plain(found)).toBe(plain([['a', 'b'], null, [''], ['a', 'b'], null]));
});

it('lists, structs and UUIDs stay as they are in operators and files', async () => {
  const made = rows.select(
    'i',
    'u',
    elementAt(col('ls'), 1).as('one'),
    split(col('t'), '|').as('parts'),
    's',
  );
  const joined = made.join(rows.select('i', 'g', col('ls').as('more')), 'i').orderBy(col('i').desc());
  const out = join(temporaryFolder(), 'out.parquet');
  await joined.union(joined).filter(expr('s.a != 1')).write.parquet(out);
  const types = await duckRows(`describe select * from '${out}'`);
  expect(types.map(([, type]) => type)).toEqual([
    'BIGINT',
    'UUID',
    'STRUCT(x BIGINT, y VARCHAR)',
    'VARCHAR[]',
    'STRUCT(a BIGINT, b STRUCT(c VARCHAR, d BIGINT[]))',
    'BIGINT[]',
    'STRUCT(x BIGINT, y VARCHAR)[]',
  ]);
  const same = `select i, u, ls[1], string_split(t, '|'), s, g, ls from '${file}' where s.a != 1`;
  const differ = await duckRows(`(${same}) except select * from '${out}'`);
  expect(differ).toEqual([]);
  expect(await duckRows(`select count(*) from '${out}'`)).toEqual([[50n]]);
  const groups = rows.groupBy(expr('i % 2').as('k')).agg(first('s').as('s'), collectList('g').as('g'));
  expect((await groups.orderBy('k').toArray())[1]).toMatchObject({ s: { a: 1n, b: { c: 'x1' } } });
});

it('fields of structs are read by filters, groups, sums and orders', async () => {
  expect(await rows.filter(expr("s.a > 3 and s.b.c = 'x5'")).select('i').toArray()).toEqual([{ i: 5n }]);
  expect(await rows.groupBy('s.b.c').agg(count()).count()).toBe(27);
  expect(await rows.groupBy().agg(sum('s.a').as('all')).toArray()).toEqual([{ all: 507n }]);
  expect(await rows.orderBy(col('s.a').desc()).select('s.a').limit(1).toArray()).toEqual([{ 's.a': 38n }]);
  const other = rows
    .withColumn('s', elementAt(col('ls'), 1))
    .withColumn('z', col('s.x'))
    .select('z');
  expect(await other.limit(2).toArray()).toEqual([{ z: 0n }, { z: 1n }]);
});

it('a column with the name of a field wins', async () => {
  const both = rows.withColumn('s.a', col('i').times(10));
  expect(await both.select('s.a', 's.b.c').limit(2).toArray()).toEqual([
    { 's.a': 0n, 's.b.c': null },
    { 's.a': 10n, 's.b.c': 'x1' },
  ]);
});

it('what lists and structs do not have is refused by name', async () => {
  const refused = (text: string) => expect(rows.select(expr(text).as('x')).toArray()).rejects;
  await refused('s.z').toThrow('there is no column "s.z"');
  await refused("field(s, 'z')").toThrow('a struct has no field "z". Its fields are: a, b');
  await refused('field(s, t)').toThrow("does not fit field(struct, 'name'): s is Struct<");
  await refused('elementAt(i, 1)').toThrow('does not fit elementAt(list, number): i is int64');
  await refused("elementAt(g, 'a')").toThrow('does not fit elementAt(list, number): g is List<Int64>');
  await refused('listLength(s)').toThrow('does not fit listLength(list)');
  await refused('split(i, 1)').toThrow('does not fit split(text, separator)');
  await refused('g = 1').toThrow('g is List<Int64>, 1 is int64');
  await refused('cast(g as text)').toThrow('g is List<Int64>, which cannot be cast to utf8');
  await expect(rows.select('g').distinct().count()).rejects.toThrow('cannot be grouped by the column "g"');
  expect(String(listLength(split(col('t'), '|')))).toBe("listLength(split(t, '|'))");
  expect(String(field(elementAt(col('ls'), 1), 'x'))).toBe("field(elementAt(ls, 1), 'x')");
});

it('large lists, large texts and columns of nulls are read, and kept in files', async () => {
  const [id, child] = [1, 2].map(() => vectorFromArray([1, 2, 3], new Int32()).data[0]);
  const offsets = BigInt64Array.of(0n, 1n, 1n, 3n);
  const type = new LargeList(new Field('item', new Int32(), true));
  const list = new Data(type, 0, 3, 0, { 0: offsets } as never, [child]);
  const text = vectorFromArray(['a', 'é', null], new LargeUtf8()).data[0];
  const none = makeData({ type: new Null(), length: 3 });
  const large = session.from([new RecordBatch({ id, list, text, none })]);
  const read = large.select(listLength(col('list')).as('n'), elementAt(col('list'), -1).as('last'));
  expect(await read.toArray()).toEqual([
    { n: 1n, last: 1 },
    { n: 0n, last: null },
    { n: 2n, last: 3 },
  ]);
  expect(await large.explode('list').select('id', 'list').toArray()).toHaveLength(3);
  expect(await large.join(large.select('text', col('id').as('other')), 'text').count()).toBe(2);
  const folder = temporaryFolder();
  await large.write.parquet(join(folder, 'large.parquet'));
  await large.write.arrow(join(folder, 'large.arrow'));
  const rowsOf = await large.toArray();
  expect(rowsOf[2]).toEqual({ id: 3, list: [2, 3], text: null, none: null });
  expect(await session.read.parquet(join(folder, 'large.parquet')).toArray()).toEqual(rowsOf);
  expect(await session.read.arrow(join(folder, 'large.arrow')).toArray()).toEqual(rowsOf);
});
