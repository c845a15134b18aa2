import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { NdjsonSource, type NdjsonSourceOptions } from '../../../connectors/ndjson/ndjson-source.ts';
import { col, count } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { duckdb } from '../parquet/parquet-testing.ts';
import { readTable, readText } from './text-testing.ts';

const folder = temporaryFolder();
const session = await cpuSession();
const kinds = {
  date: { arrow: 'Date32<DAY>', duckdb: 'DATE' },
  local: { arrow: 'Timestamp<MICROSECOND>', duckdb: 'TIMESTAMP' },
  zoned: { arrow: 'Timestamp<MICROSECOND, UTC>', duckdb: 'TIMESTAMP WITH TIME ZONE' },
  text: { arrow: 'Utf8', duckdb: 'VARCHAR' },
};

/** Columns of texts by the type that they are read as. */
const columns: readonly (readonly [type: keyof typeof kinds, texts: readonly string[]])[] = [
  ['date', ['2023-11-05', '0001-01-01', '9999-12-31', '2024-02-29', ' 1969-12-31 ']],
  ['date', ['"2023-11-05"', '', '2000-02-29']],
  [
    'local',
    ['2023-11-05 08:40:00.123', '2023-11-05T08:40:00', '1969-12-31 23:59', '0001-01-01 00:00:00.000001'],
  ],
  ['local', ['2023-11-05 08:40:00.123456000', '9999-12-31 23:59:59.999999', '']],
  ['zoned', ['2023-11-05T08:40:00Z', '2023-11-05T08:40:00.5Z']],
  [
    'zoned',
    [
      '2023-11-05 08:40:00+02:00',
      '2023-11-05T08:40:00-0230',
      '2023-11-05 08:40:00+14',
      '2023-11-05 08:40:00',
    ],
  ],
  ['text', ['2023-11-05', '2023-11-05 08:40:00']],
  ['text', ['2023-02-29', '2023-02-28']],
  ['text', ['2023-11-05 08:40:60', '2023-11-05 08:40:00']],
  ['text', ['2023-11-05 08:40:00,5', '2023-11-05 08:40:00']],
  ['text', ['2023-11-05T08:40:00z', '2023-11-05T08:40:00Z']],
  ['text', ['2023-11-05', 'never']],
  ['text', ['2023-11-05', '5']],
];

/** Types and values of the column `at` of a CSV by our reader, as texts. */
async function ours(file: string): Promise<unknown[]> {
  const rows = session.read.csv(file, { delimiter: ';' });
  const { type } = (await rows.schema()).fields[1];
  const texts = await rows.select(col('at').cast('utf8').as('at')).toArray();
  return [String(type), ...texts.map(({ at }) => at)];
}

describe('ISO times', () => {
  test.each(columns)('are read as %s, with the values of DuckDB: %j', async (kind, texts) => {
    const file = join(folder, 'times.csv');
    writeFileSync(file, `id;at\n${texts.map((text, row) => `${row};${text}\n`).join('')}`);
    const duck = await duckdb();
    await duck.run("SET timezone = 'UTC'");
    const result = await duck.runAndReadAll(
      `SELECT typeof("at"), "at"::VARCHAR FROM read_csv('${file}', delim = ';', header = true)`,
    );
    const rows = result.getRows();
    expect(rows[0][0]).toBe(kinds[kind].duckdb);
    expect(await ours(file)).toEqual([kinds[kind].arrow, ...rows.map(([, text]) => text)]);
  });

  test('with digits beyond microseconds stay text: a timestamp would lose them', async () => {
    const content = 'id,at\n1,2023-11-05 08:40:00.123456789\n2,2023-11-05 08:41:00\n';
    expect((await readText(folder, content)).columns[1]).toBe('at:Utf8');
    const given = await readText(folder, content, { types: { at: 'timestamp' } });
    expect(given.columns[1]).toBe(`at:${kinds.local.arrow}`);
  });

  test('of a header that no other row has type name the columns', async () => {
    const { columns: names } = await readText(folder, 'a,b\nx,2023-11-05\ny,2023-11-06\n');
    expect(names).toEqual(['a:Utf8', `b:${kinds.date.arrow}`]);
    const { columns: none } = await readText(folder, 'x,2023-11-05\ny,2023-11-06\n');
    expect(none).toEqual(['column1:Utf8', `column2:${kinds.date.arrow}`]);
  });

  test('and texts in later rows are errors with line and advice, or nulls where faults are taken', async () => {
    const day = 'u1,1,4,2023-11-05T08:40:00Z\n';
    const file = join(folder, 'late.csv');
    writeFileSync(
      file,
      `user,item,rating,at\n${day.repeat(200_000)}u1,2,3,yesterday\nu1,3,3,NA\nu1,4,3,2023-11-06\n`,
    );
    const rows = session.read.csv(file);
    await expect(rows.count()).resolves.toBe(200_003);
    await expect(rows.filter(col('at').isNull()).count()).rejects.toThrow(
      /line 200002: "yesterday" is not a time such as .*column "at".*option types \(utf8 takes any text\)/,
    );
    const asText = session.read.csv(file, { types: { at: 'utf8' } });
    expect(await asText.filter(col('at').eq('yesterday')).count()).toBe(1);
    expect(await asText.filter(col('at').eq('2023-11-06')).count()).toBe(1);
  });

  test('are keys of groups, of distinct rows and of filters with literals', async () => {
    const file = join(folder, 'events.csv');
    const lines = Array.from(
      { length: 6000 },
      (_, i) => `u${i % 7},2023-11-0${1 + (i % 3)}T0${i % 5}:00:00Z`,
    );
    writeFileSync(file, `user,at\n${lines.join('\n')}\n`);
    const [times, texts] = [undefined, { at: 'utf8' } as const].map((types) =>
      session.read.csv(file, types && { types }),
    );
    expect(await times.distinct().count()).toBe(await texts.distinct().count());
    expect(await times.groupBy('at').agg(count().as('n')).count()).toBe(15);
    const since = col('at').ge('2023-11-02T01:00:00+01:00');
    expect(await times.filter(since).count()).toBe(
      lines.filter((line) => line.slice(3) >= '2023-11-02T00:00:00Z').length,
    );
  });

  test('split ratings at the same rows as their texts', async () => {
    const file = join(folder, 'ratings.csv');
    const lines = Array.from(
      { length: 3000 },
      (_, i) =>
        `${i % 70},${i % 31},${1 + (i % 5)},2023-11-05 ${String((i * 7) % 24).padStart(2, '0')}:00:${10 + (i % 50)}`,
    );
    writeFileSync(file, `user,item,rating,timestamp\n${lines.join('\n')}\n`);
    const before = new Date('2023-11-05T12:00:00Z');
    const parts = await Promise.all(
      [undefined, { timestamp: 'utf8' } as const].map(async (types) => {
        const rows = session.read.csv(file, types && { types });
        const splits = [...(await rows.timeSplit({ before })), ...(await rows.timeSplit([0.7, 0.3]))];
        return Promise.all(
          splits.map((part) =>
            part.select('user', 'item', 'rating').orderBy('user', 'item', 'rating').toArray(),
          ),
        );
      }),
    );
    expect(parts[0]).toEqual(parts[1]);
    expect(parts[0][0]).toHaveLength(lines.filter((line) => /05 (0\d|1[01]):/.test(line)).length);
  });

  test('in strings of NDJSON are dates and timestamps, too', async () => {
    const content =
      '{"d":"2023-11-05","t":"2023-11-05T08:40:00Z","n":null,"x":"2023-11-05"}\n{"t":"2023-11-06T00:00:00+01:00","x":""}\n';
    const file = join(folder, 'times.ndjson');
    writeFileSync(file, content);
    const readJson = (options?: NdjsonSourceOptions) => readTable(new NdjsonSource(file, options));
    const found = await readJson();
    expect(found.columns).toEqual([`d:${kinds.date.arrow}`, `t:${kinds.zoned.arrow}`, 'n:Utf8', 'x:Utf8']);
    const given = await readJson({ types: { d: 'utf8' } });
    expect(given.rows.map(([d]) => d)).toEqual(['2023-11-05', null]);
  });
});
