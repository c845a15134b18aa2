import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { packLz4Bytes } from '../../../connectors/compression/lz4-frame.ts';
import { factorflow, fails, json, program, quick, ratings, start, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const put = (name: string, content: string | Uint8Array) => (writeFileSync(path(name), content), path(name));

const train = (input: string, ...flags: string[]) => [
  'train',
  input,
  ...quick,
  '--device',
  'cpu',
  '--quiet',
  '--force',
  '--model-dir',
  path('model'),
  ...flags,
];

/** Runs the built command with bytes on stdin. */
function piped(
  input: Uint8Array,
  ...args: string[]
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk: Buffer) => (stderr += String(chunk)));
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  return new Promise((resolve) => void child.on('close', (code) => resolve({ code, stdout, stderr })));
}

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
      'predict',
      path('model'),
      '-',
      '--format',
      'csv',
      '--output',
      '-',
      '--to',
      'ndjson',
      '--quiet',
    );
    expect(predicted).toMatchObject({ code: 0, stderr: '' });
    const lines = predicted.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { prediction: unknown });
    expect(lines).toEqual([
      { user: 1, item: 'item 1', prediction: expect.any(Number) },
      { user: 2, item: 'item 9', prediction: null },
    ]);
    const recommended = await start([
      'recommend',
      path('model'),
      '--users',
      '1,2',
      '--n',
      '2',
      '--output',
      '-',
      '--to',
      'csv',
      '--quiet',
    ]).outcome;
    expect(recommended.stdout).toMatch(
      /^user,rank,item,prediction\n1,1,item \d,[\d.]+\n1,2,.*\n2,1,.*\n2,2,.*\n$/,
    );
    await fails(
      2,
      /the format for stdout is not known\. Set --to: csv/,
      'recommend',
      path('model'),
      '--output',
      '-',
    );
    const both = await factorflow(
      'recommend',
      path('model'),
      '--output',
      '-',
      '--to',
      'csv',
      '--json',
      '--quiet',
    );
    expect(both.code).toBe(2);
    expect(both.stderr).toMatch(/--json and the output would both go to stdout/);
  });

  test('an Arrow stream on stdin that ends without its mark is cut off', async () => {
    await json('convert', ratings, path('r.arrows'));
    const stream = readFileSync(path('r.arrows'));
    const { code, stderr } = await piped(
      stream.subarray(0, -8),
      'convert',
      '-',
      path('cut.parquet'),
      '--from',
      'arrow',
      '--quiet',
    );
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /the Arrow stream is cut off after \d+ batch(es)?: its end mark is missing \(stdin\)\. Write or send it again/,
    );
    expect(
      (await piped(stream, 'convert', '-', path('whole.parquet'), '--from', 'arrow', '--quiet')).code,
    ).toBe(0);
  });
});

describe('bad values obey --on-bad-rows, wherever they stand', () => {
  const good = Array.from({ length: 30 }, (_, i) => `${i % 5},${i % 3},${i % 4}\n`).join('');
  const late = Array.from({ length: 700_000 }, (_, i) => `${i % 50},${i % 30},${i % 4}\n`).join('');

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
    ['late', `user,item,rating\n${late}x,1,2\n`, 'line 700002: user "x" is not a whole number'],
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
      'convert',
      file,
      path('x.csv'),
      '--quiet',
    );
    const nested = put('nested.ndjson', '{"user":1,"tags":1}\n{"user":2,"tags":[1]}\n');
    await fails(
      3,
      /line 2: .* is an object or a list, which no column holds \(.*column "tags"\)\. Name the other fields in --columns/,
      'convert',
      nested,
      path('x.csv'),
      '--quiet',
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
