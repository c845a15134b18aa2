import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { collect, context, duckdb, temporaryFolder } from './parquet-testing.ts';

test('lists and structs are read by names of any characters, all together and each by itself', async () => {
  const values = {
    é: '[i, i + 1]',
    日本: '[[i]]',
    'e\u0301\u{1F600}': "[{'é': 'a', 'b': i}]",
    naïve: "{'a': i, '日': ['x']}",
    ab: '[i]',
    user: "'ü' || i",
  };
  const names = Object.keys(values);
  const query = Object.entries(values).map(([name, value]) => `${value} AS "${name}"`);
  const file = join(temporaryFolder(), 'names.parquet');
  const select = `SELECT ${query.join(', ')}, i AS "é2" FROM range(2) t(i)`;
  await (await duckdb()).run(`COPY (${select}) TO '${file}' (FORMAT parquet)`);
  const rows = [0, 1].map((i) => [[i, i + 1], [[i]], [{ é: 'a', b: i }], { a: i, 日: ['x'] }, [i], `ü${i}`]);
  const source = new ParquetSource(file);
  for (const columns of [names, ...names.map((name) => [name])]) {
    const batches = await collect(await source.execute(context(), columns));
    const read = JSON.stringify(
      batches.flatMap((batch) => batch.toArray()),
      (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value),
    );
    const own = rows.map((row) =>
      Object.fromEntries(columns.map((name) => [name, row[names.indexOf(name)]])),
    );
    expect(JSON.parse(read)).toEqual(own);
  }
});
