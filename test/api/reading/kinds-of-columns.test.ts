/** Ratings and times in every type that a format can store give the same model and split as plain numbers. */
import { DuckDBInstance } from '@duckdb/node-api';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, type Dataset, type ProgressEvent } from '../../../index.ts';
import { batchOf } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const session = await cpuSession({ workers: 1 });

const COUNT = 240;
const START = Date.UTC(2001, 8, 9);
/** The i-th time in milliseconds. Times are a day apart and not in order. */
const timeOf = (i: number) => START + ((i * 77) % COUNT) * 86_400_000;
const rows = Array.from({ length: COUNT }, (_, i) => ({
  user: i % 13,
  item: (i * 7) % 29,
  rating: i % 2,
  time: timeOf(i),
}));

async function writeParquet(name: string, rating: string, time = '0'): Promise<string> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const days = `(i * 77) % ${COUNT}`;
  await connection.run(
    `COPY (SELECT (i % 13)::INTEGER AS "user", ((i * 7) % 29)::INTEGER AS item, ${rating} AS rating, ${time.replaceAll('DAYS', days)} AS "timestamp" FROM range(${COUNT}) t(i)) TO '${path(name)}' (FORMAT parquet)`,
  );
  connection.closeSync();
  instance.closeSync();
  return path(name);
}

const plain = () =>
  session.from([
    batchOf({
      user: { type: 'int32', values: rows.map(({ user }) => user) },
      item: { type: 'int32', values: rows.map(({ item }) => item) },
      rating: { type: 'float32', values: rows.map(({ rating }) => rating) },
      timestamp: { type: 'float64', values: rows.map(({ time }) => time) },
    }),
  ]);

const als = new ALS({ rank: 2, maxIter: 2, seed: 3 });
async function factors(ratings: Dataset): Promise<readonly number[]> {
  const model = await als.fit(ratings);
  return [...model.userArrays.values, ...model.itemArrays.values];
}

const usual = await factors(plain());

describe('ratings', () => {
  it.each([
    ['text', '(i % 2)::VARCHAR'],
    ['text with decimals', "CASE WHEN i % 2 = 1 THEN '1.0' ELSE '0' END"],
    ['booleans', '(i % 2 = 1)'],
    ['decimals', '(i % 2)::DECIMAL(5, 2)'],
    ['a wide decimal', '(i % 2)::DECIMAL(30, 2)'],
  ])('of Parquet as %s', async (name, rating) => {
    expect(await factors(session.read.parquet(await writeParquet(`${name}.parquet`, rating)))).toEqual(usual);
  });

  it.each([
    [
      'ndjson',
      (row: (typeof rows)[number]) =>
        JSON.stringify({ user: row.user, item: row.item, rating: row.rating === 1 }),
    ],
    [
      'strings.ndjson',
      (row: (typeof rows)[number]) =>
        JSON.stringify({ user: row.user, item: row.item, rating: String(row.rating) }),
    ],
    ['csv', (row: (typeof rows)[number]) => `${row.user},${row.item},${row.rating === 1 ? 'True' : 'False'}`],
  ] as const)('of %s as booleans or texts', async (name, line) => {
    const file = path(`ratings.${name}`);
    writeFileSync(file, `${name === 'csv' ? 'user,item,rating\n' : ''}${rows.map(line).join('\n')}\n`);
    expect(await factors(await session.read.any(file))).toEqual(usual);
  });

  it('of numbers and other texts are bad rows, counted by the policy, in every format', async () => {
    const parquet = await writeParquet(
      'mixed.parquet',
      "CASE WHEN i IN (3, 60) THEN 'good' ELSE (i % 2)::VARCHAR END",
    );
    const csv = path('mixed.csv');
    writeFileSync(
      csv,
      `user,item,rating\n${rows.map(({ user, item, rating }, i) => `${user},${item},${[3, 60].includes(i) ? 'good' : rating}`).join('\n')}\n`,
    );
    for (const file of [parquet, csv]) {
      const read = await session.read.any(file);
      await expect(als.fit(read)).rejects.toThrow(
        /2 bad rows, the first in .*(row|line) \d+: rating "good" is not a number/,
      );
      const model = await new ALS({ rank: 2, maxIter: 1, onBadRows: 'skip' }).fit(read);
      expect([model.training?.badRows, model.training?.ratings]).toEqual([2, COUNT - 2]);
    }
  });
});

const day = (days: string) => `(TIMESTAMP '2001-09-09' + INTERVAL (${days}) DAY)`;

/** The users and items of a part. */
async function pairsOf(part: Dataset): Promise<string[]> {
  const pairs: string[] = [];
  for await (const batch of part) for (const row of batch.toArray()) pairs.push(`${row.user} ${row.item}`);
  return pairs;
}

const [, latest] = await plain().timeSplit([0.7, 0.3]);
const expectedPairs = await pairsOf(latest);

describe('times', () => {
  const kinds = [
    ['date', `${day('DAYS')}::DATE`],
    ['timestamp', day('DAYS')],
    ['timestamp in nanoseconds', `${day('DAYS')}::TIMESTAMP_NS`],
    ['timestamp in milliseconds', `${day('DAYS')}::TIMESTAMP_MS`],
    ['timestamp with a zone', `${day('DAYS')}::TIMESTAMPTZ`],
    ['seconds', `(1000000000 - 6400 + (DAYS) * 86400)::BIGINT`],
    ['milliseconds', `(${START} + (DAYS) * 86400000)::BIGINT`],
    ['microseconds', `(${START}000 + (DAYS) * 86400000000)::BIGINT`],
    ['nanoseconds', `(${START}000000 + (DAYS) * 86400000000000)::BIGINT`],
    ['decimals', `(${START} + (DAYS) * 86400000)::DECIMAL(20, 0)`],
    ['text of dates', `strftime(${day('DAYS')}, '%Y-%m-%d')`],
    ['text of times', `strftime(${day('DAYS')}, '%Y-%m-%dT%H:%M:%SZ')`],
  ] as const;

  it.each(kinds)(
    'of Parquet as %s are cut by weights and at a Date as milliseconds are',
    async (name, time) => {
      const read = session.read.parquet(await writeParquet(`${name}.times.parquet`, '1', time));
      const [, test] = await read.timeSplit([0.7, 0.3]);
      expect(await pairsOf(test)).toEqual(expectedPairs);
      const before = new Date(START + 100 * 86_400_000);
      const [early] = await read.timeSplit({ before });
      expect(await early.count()).toBe(100);
    },
  );

  it.each([
    ['csv', (row: (typeof rows)[number]) => `${row.user},${row.item},1,${new Date(row.time).toISOString()}`],
    [
      'ndjson',
      (row: (typeof rows)[number]) =>
        JSON.stringify({ ...row, timestamp: new Date(row.time).toISOString().slice(0, 10) }),
    ],
  ] as const)('of %s as ISO text', async (format, line) => {
    const file = path(`iso.${format}`);
    writeFileSync(
      file,
      `${format === 'csv' ? 'user,item,rating,timestamp\n' : ''}${rows.map(line).join('\n')}\n`,
    );
    const [, test] = await session.read[format](file).timeSplit([0.7, 0.3]);
    expect(await pairsOf(test)).toEqual(expectedPairs);
    expect(
      (await new ALS({ rank: 2, maxIter: 1, onDuplicates: 'last' }).fit(session.read[format](file))).training
        ?.badRows,
    ).toBe(0);
  });

  const eventsOf = async (
    values: readonly number[],
    work: (data: Dataset, onEvent: (event: ProgressEvent) => void) => Promise<unknown>,
  ) => {
    const events: ProgressEvent[] = [];
    const ids = values.map((_, i) => i % 3);
    const batch = batchOf({
      user: { type: 'int32', values: ids },
      item: { type: 'int32', values: ids },
      rating: { type: 'float32', values: ids },
      timestamp: { type: 'float64', values },
    });
    await work(session.from([batch]), (event) => events.push(event));
    return events.flatMap((event) =>
      event.type === 'note' || event.type === 'warning' ? [`${event.type}: ${event.text}`] : [],
    );
  };
  const works = [
    [
      'timeSplit',
      (data: Dataset, onEvent: (event: ProgressEvent) => void) => data.timeSplit([1, 1], { onEvent }),
    ],
    [
      'onDuplicates last',
      (data: Dataset, onEvent: (event: ProgressEvent) => void) =>
        new ALS({ rank: 1, maxIter: 1, onDuplicates: 'last' }).fit(data, { onEvent }),
    ],
  ] as const;

  it.each(works)(
    'of plain numbers have their unit in a note of %s, and two units in a warning with counts',
    async (_name, work) => {
      expect(await eventsOf([1.6e9, 1.7e9, 1.5e9, 1.65e9], work)).toContain(
        'note: the times of timestamp are seconds, by their size',
      );
      expect(await eventsOf([1, 2, 3, 4], work)).not.toContainEqual(expect.stringContaining('by their size'));
      expect(await eventsOf([1.6e9, 1.7e12, 1.5e9, 1.65e9], work)).toContain(
        'warning: the times of timestamp have different units by their size: 3 seconds and 1 milliseconds. They are ordered as plain numbers; bring them to one unit',
      );
    },
  );

  it('of two units, or of none that is known, have no place for a Date', async () => {
    for (const values of [
      [1.6e9, 1.7e12],
      [1, 2],
    ]) {
      await expect(eventsOf(values, (data) => data.timeSplit({ before: new Date() }))).rejects.toThrow(
        'whose unit is unknown',
      );
    }
  });
});
