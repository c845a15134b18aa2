import { writeFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, test, it } from 'vitest';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { packLz4Bytes } from '../../../connectors/compression/lz4-frame.ts';
import {
  modelFiles,
  refusals,
  argv,
  factorflow,
  fails,
  json,
  piped,
  quick,
  start,
  ratings,
  trainedModel,
  writeParquet,
} from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const put = (name: string, content: string | Uint8Array) => (writeFileSync(path(name), content), path(name));

const train = (
  input: string,
  ...flags: string[]
) => argv`train ${input} ${quick} --device cpu --quiet --force --model-dir ${path('model')}
  ${flags}`;

describe('ratings in files as people have them', () => {
  const rows = Array.from({ length: 60 }, (_, i) => [i % 6, `item ${i % 5}`, (i % 9) / 2] as const);
  const csv = `user,item,rating\n${rows.map((row) => row.join(',')).join('\n')}\n`;
  const ndjson = rows.map(([user, item, rating]) => JSON.stringify({ user, item, rating })).join('\n');
  const european = `user;item;rating\n${rows.map(([user, item, rating]) => `${user};${item};${String(rating).replace('.', ',')}`).join('\n')}\n`;

  const errorOf = async (...args: [string, ...string[]]) =>
    ((await json(...train(...args))).iterations as { trainRmse: number }[])[1].trainRmse;
  let reference: number;
  beforeAll(async () => {
    reference = await errorOf(put('reference.csv', csv));
  });

  test.each([
    ['a.csv', csv, []],
    ['a.csv.lz4', packLz4Bytes(Buffer.from(csv)), []],
    ['a.ndjson', ndjson, []],
    ['a.jsonl.lz4', packLz4Bytes(Buffer.from(ndjson)), []],
    ['a.json', ndjson, []],
    ['european.csv', european, ['--decimal-comma']],
    ...(hasZstd()
      ? ([
          ['a.csv.zst', zstdCompressSync(csv), []],
          ['a.ndjson.zst', zstdCompressSync(ndjson), []],
        ] as const)
      : []),
  ] as const)('%s trains to the same error', async (name, content, flags) => {
    expect(await errorOf(put(name, content), ...flags)).toBe(reference);
  });

  test('stdin and stdout, by the names of formats', async () => {
    expect((await piped(Buffer.from(ndjson), ...train('-', '--format', 'ndjson'))).code).toBe(0);
    const pairs = Buffer.from('user,item\n1,item 1\n2,item 9\n');
    const predicted = await piped(
      pairs,
      ...argv`predict ${path('model')} - --format csv --output - --to ndjson --quiet`,
    );
    expect(predicted).toMatchObject({ code: 0, stderr: '' });
    const lines = String(predicted.stdout)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { prediction: unknown });
    expect(lines).toEqual([
      { user: 1, item: 'item 1', prediction: expect.any(Number) },
      { user: 2, item: 'item 9', prediction: null },
    ]);
    const recommended = await start(
      argv`recommend ${path('model')} --users 1,2 --n 2 --output - --to csv --quiet`,
    ).outcome;
    expect(recommended.stdout).toMatch(
      /^user,rank,item,prediction\n1,1,item \d,[\d.]+\n1,2,.*\n2,1,.*\n2,2,.*\n$/,
    );
    await fails(
      2,
      /the format for stdout is not known\. Set --to: csv/,
      ...argv`recommend ${path('model')} --output -`,
    );
    const both = await factorflow(...argv`recommend ${path('model')} --output - --to csv --json --quiet`);
    expect(both.code).toBe(2);
    expect(both.stderr).toMatch(/--json and the output would both go to stdout/);
  });
});

describe('bad values obey --on-bad-rows, wherever they stand', () => {
  const good = Array.from({ length: 30 }, (_, i) => `${i % 5},${i % 3},${i % 4}\n`).join('');
  /** More than the 4 MiB that types are inferred from. */
  const late = Array.from(
    { length: 200_000 },
    (_, i) => `${1e9 + (i % 50)},${1e9 + (i % 30)},${i % 4}\n`,
  ).join('');

  test.each([
    ['in the first row', `user,item,rating\n1,1,bad\n${good}`, 'line 2: rating "bad" is not a number'],
    [
      'in the first row of a file without a header',
      `1,1,bad\n${good}`,
      'line 1: rating "bad" is not a number',
    ],
    [
      'in the part that types are inferred from',
      `user,item,rating\n${good}1,1,"b,d"\n`,
      'line 32: rating "b,d" is not a number',
    ],
    ['late', `user,item,rating\n${late}x,1,2\n`, 'line 200002: user "x" is not a whole number'],
    ['as a token for null', `user,item,rating\n${good}1,NULL,3\n`, 'line 32: item is null'],
    [
      'as a row of another length',
      `user,item,rating\n${good}1,2\n`,
      'line 32: the row has 2 fields, need 3: "1,2"',
    ],
  ])('%s', async (_name, text, reason) => {
    const file = put('bad.csv', text);
    const strict = await factorflow(...train(file));
    expect(strict.code).toBe(3);
    expect(strict.stderr).toContain(
      `1 bad row, the first in ${file}, ${reason}. Clean the data, or leave such rows out with --on-bad-rows skip`,
    );
    const skipped = await factorflow(...train(file, '--on-bad-rows', 'skip'));
    expect(skipped.code).toBe(0);
    expect(skipped.stderr).toContain(`warning: left out 1 bad row, the first in ${file}, ${reason}`);
  });

  test('in NDJSON: a broken last line, missing fields, nested values', async () => {
    const file = put(
      'bad.ndjson',
      `${'{"user":1,"item":2,"rating":3}\n{"user":2,"item":1,"rating":4}\n'.repeat(5)}{"user":1,"item":1}\n{"user":1,"item":1,"rating":{"stars":3}}\n{"user":1,"it`,
    );
    await fails(3, /3 bad rows, the first in .*bad\.ndjson, line 11: rating is null/, ...train(file));
    expect((await factorflow(...train(file, '--on-bad-rows', 'skip'))).code).toBe(0);
    await fails(
      3,
      /line 13: the line is not a complete JSON object: /,
      ...argv`convert ${file} ${path('x.csv')} --quiet`,
    );
    const nested = put('nested.ndjson', '{"user":1,"tags":1}\n{"user":2,"tags":[1]}\n');
    await fails(
      3,
      /line 2: .* is an object or a list, which no column holds \(.*column "tags"\)\. Name the other fields in --columns/,
      ...argv`convert ${nested} ${path('x.csv')} --quiet`,
    );
    expect((await factorflow('convert', nested, path('x.csv'), '--columns', 'user', '--quiet')).code).toBe(0);
  });

  test('behind a split of the ratings too', async () => {
    const file = put('split.csv', `user,item,rating\n${good.repeat(10)}1,1,bad\n`);
    await fails(
      3,
      /1 bad row, the first in .*split\.csv, line 302: rating "bad" is not a number/,
      ...train(file, '--test-fraction', '0.5'),
    );
    expect((await factorflow(...train(file, '--test-fraction', '0.5', '--on-bad-rows', 'skip'))).code).toBe(
      0,
    );
  });

  test('a header only, lz4 and zstd that end early', async () => {
    await fails(3, /no ratings/, ...train(put('header.csv', 'user,item,rating\n')));
    const packed = packLz4Bytes(Buffer.from(`user,item,rating\n${good.repeat(100)}`));
    await fails(
      3,
      /the lz4 data are cut off \(.*cut\.csv\.lz4\)/,
      ...train(put('cut.csv.lz4', packed.subarray(0, packed.length - 20))),
    );
    if (hasZstd())
      await fails(
        3,
        /the zstd data are cut off \(.*cut\.csv\.zst\)/,
        ...train(put('cut.csv.zst', zstdCompressSync(`user,item,rating\n${good}`).subarray(0, -5))),
      );
  });

  test('decimal commas without the flag are told', async () => {
    await fails(
      3,
      /rating "4,5" is not a number \(set --decimal-comma if the decimal separator is a comma\)/,
      ...train(put('commas.csv', 'user;item;rating\n1;1;4,5\n')),
    );
  });
});

describe('errors of data', () => {
  const models = join(folder, 'models');
  let runs = 0;
  const train = (path: string, ...flags: string[]) =>
    argv`train ${path} ${quick} --model-dir ${join(models, String(runs++))} ${flags}`;

  /** Rows 0 to 99 with some ratings replaced. */
  const withBad = (cases: string) =>
    `SELECT i::INTEGER AS "user", (i % 7)::INTEGER AS item, (CASE ${cases} ELSE 3 END)::FLOAT AS rating FROM range(100) t(i) ORDER BY i`;

  beforeAll(() => {
    mkdirSync(join(folder, 'empty'));
    writeFileSync(join(folder, 'text.parquet'), 'user,item,rating\n1,2,3\n');
    writeFileSync(join(folder, 'zero.parquet'), '');
    const whole = readFileSync(ratings);
    writeFileSync(join(folder, 'cut.parquet'), whole.subarray(0, Math.floor(whole.length / 2)));
  });

  describe('bad data exits with 3 and says where', () => {
    it.each<[string, RegExp]>([
      ['missing.parquet', /no such file or folder \(.*missing\.parquet\)/],
      ['empty', /no .*file|empty/i],
      ['text.parquet', /not a Parquet file.*text\.parquet/],
      ['zero.parquet', /empty.*zero\.parquet/],
      ['cut.parquet', /cut off.*cut\.parquet/],
      ['no-*.parquet', /no file matches the pattern/],
    ])('%s', async (name, pattern) => {
      await fails(3, pattern, ...train(join(folder, name)));
    });

    it('a missing column: names the existing ones', async () => {
      for (const [args, pattern] of refusals`
        ${train(ratings, '--item-col', 'film')} | no column "film"; there are: user \(Int32\), item \(Int32\), rating \(Float32\), timestamp \(Int64\)
        inspect ${ratings} --item-col film | no column "film"
      `)
        await fails(3, pattern, ...args);
    });

    it('columns of the wrong type', async () => {
      const file = await writeParquet(
        join(folder, 'types.parquet'),
        'SELECT 1.5::DOUBLE AS "user", 1 AS item, \'good\' AS rating, 2 AS stars',
      );
      for (const [args, pattern] of refusals`
        ${train(file, '--rating-col', 'stars')} | 1 bad row, the first in .*: user 1\.5 is not a whole number
        ${train(file, '--user-col', 'stars')} | 1 bad row, the first in .*: rating "good" is not a number\. Clean the data
      `)
        await fails(3, pattern, ...args);
    });

    it.each<[string, string, RegExp]>([
      ['null', 'WHEN i IN (7, 12, 40) THEN NULL', /3 bad rows, the first in .*, row 8: rating is null/],
      ['NaN', "WHEN i IN (9, 50) THEN 'NaN'::FLOAT", /2 bad rows, the first in .*, row 10: rating is NaN/],
      [
        'infinite',
        "WHEN i = 99 THEN '-Infinity'::FLOAT",
        /1 bad row, the first in .*, row 100: rating is -Infinity/,
      ],
    ])('%s ratings: count and first position', async (name, cases, pattern) => {
      const file = await writeParquet(join(folder, `${name}-ratings.parquet`), withBad(cases));
      await fails(3, pattern, ...train(file));
      const skipped = await factorflow(...train(file, '--on-bad-rows', 'skip', '--quiet'));
      expect(skipped.code).toBe(0);
      expect(skipped.stderr).toMatch(/^factorflow: warning: left out \d bad rows?/);
    });

    it('no ratings, or none left', async () => {
      const none = await writeParquet(
        join(folder, 'none.parquet'),
        withBad('WHEN true THEN 1').replace('range(100)', 'range(0)'),
      );
      await fails(3, /no ratings/, ...train(none));
      const all = await writeParquet(join(folder, 'all-bad.parquet'), withBad('WHEN true THEN NULL'));
      const { code, stderr } = await factorflow(...train(all, '--on-bad-rows', 'skip', '--quiet'));
      expect(code).toBe(3);
      expect(stderr).toMatch(/no ratings/);
    });

    it('missing held-out ratings, before training', async () => {
      const { code, stderr } = await factorflow(...train(ratings, '--test', join(folder, 'missing.parquet')));
      expect(code).toBe(3);
      expect(stderr).toMatch(/^factorflow: read: no such file/);
    });

    it('a folder that is not a model', async () => {
      for (const [args, pattern] of refusals`
        evaluate ${join(folder, 'missing')} ${ratings} | no such file or folder
        evaluate ${join(folder, 'empty')} ${ratings} | not a model
        recommend ${ratings} --users 1 | not a model
      `)
        await fails(3, pattern, ...args);
    });

    it("ids that the model does not know are the caller's mistake", async () => {
      const model = await trainedModel();
      for (const [args, pattern] of refusals`
        recommend ${model} --users 999999999 --unknown-users error | no user 999999999
        recommend ${model} --users x --unknown-users error | no user x
      `)
        await fails(2, pattern, ...args);
    });
  });

  describe('afterwards', () => {
    it('only the models of runs that succeeded remain, and nothing half-written', () => {
      const left = readdirSync(models);
      expect(left).toHaveLength(3);
      for (const name of left) expect(readdirSync(join(models, name)).sort()).toEqual(modelFiles);
    });
  });
});
