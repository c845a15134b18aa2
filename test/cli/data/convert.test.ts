import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { readTable } from '../../connectors/text/text-testing.ts';
import {
  factorflow,
  fails,
  json,
  program,
  quick,
  ratings,
  temporaryFolder,
  trainedModel,
} from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const original = await readTable(new ParquetSource(ratings));

interface Piped {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Runs the built command with `input` on stdin; `signalless` closes nothing early. */
function piped(input: Uint8Array | undefined, ...args: string[]): Promise<Piped> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += String(chunk)));
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  return new Promise(
    (resolve) => void child.on('close', (code) => resolve({ code, stdout: Buffer.concat(stdout), stderr })),
  );
}

test('Parquet to CSV, Arrow and back: the same rows, and one JSON object', async () => {
  const told = await json('convert', ratings, path('r.csv.gz'));
  expect(told).toMatchObject({
    command: 'convert',
    rows: original.rows.length,
    bytes: readFileSync(path('r.csv.gz')).length,
    output: path('r.csv.gz'),
  });
  expect(Object.keys(told)).toEqual(['command', 'rows', 'bytes', 'seconds', 'output']);
  expect(
    gunzipSync(readFileSync(path('r.csv.gz')))
      .toString()
      .split('\n')[0],
  ).toBe('user,item,rating,timestamp');
  await json('convert', path('r.csv.gz'), path('r.arrow'));
  await json('convert', path('r.arrow'), path('r.parquet'), '--codec', 'snappy');
  for (const source of [
    new TextSource(path('r.csv.gz')),
    new ArrowSource(path('r.arrow')),
    new ParquetSource(path('r.parquet')),
  ]) {
    expect((await readTable(source)).rows.map((row) => row.map(Number))).toEqual(
      original.rows.map((row) => row.map(Number)),
    );
  }
});

test('stdin and stdout', async () => {
  const arrow = await piped(undefined, 'convert', ratings, '-', '--to', 'arrow');
  expect(arrow).toMatchObject({ code: 0 });
  const csv = await piped(arrow.stdout, 'convert', '-', '-', '--from', 'arrow', '--to', 'csv', '--quiet');
  expect(csv).toMatchObject({ code: 0, stderr: '' });
  expect(csv.stdout.toString().split('\n').length).toBe(original.rows.length + 2);
  const { code } = await piped(csv.stdout, 'convert', '-', path('piped.parquet'), '--from', 'csv');
  expect(code).toBe(0);
  expect((await readTable(new ParquetSource(path('piped.parquet')))).rows).toHaveLength(original.rows.length);
});

test('a stream that ends in the middle of a batch names the batch and leaves nothing', async () => {
  const { stdout } = await piped(undefined, 'convert', ratings, '-', '--to', 'arrow');
  const { code, stderr } = await piped(
    stdout.subarray(0, stdout.length - 1000),
    'convert',
    '-',
    path('half.parquet'),
    '--from',
    'arrow',
    '--quiet',
  );
  expect(code).toBe(3);
  expect(stderr).toMatch(/^factorflow: read: batch \d+: the data end in its middle \(stdin\)/);
  expect(() => readFileSync(path('half.parquet'))).toThrow(/ENOENT/);
});

test('a reader of stdout that goes away is no error', async () => {
  const child = spawn(process.execPath, [program, 'convert', ratings, '-', '--to', 'csv', '--quiet'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += String(chunk)));
  child.stdout.once('data', () => child.stdout.destroy());
  const code = await new Promise((resolve) => void child.on('close', resolve));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('text without a header: names, delimiter and types by flags', async () => {
  writeFileSync(path('odd.txt'), '007|1|4\n8|2|5\n');
  await json(
    'convert',
    path('odd.txt'),
    path('odd.parquet'),
    '--no-header',
    '--columns',
    'u,i,r',
    '--delimiter',
    '|',
    '--types',
    'u=utf8,r=float32',
  );
  expect(await readTable(new ParquetSource(path('odd.parquet')))).toEqual({
    columns: ['u:Utf8', 'i:Int32', 'r:Float32'],
    rows: [
      ['007', 1, 4],
      ['8', 2, 5],
    ],
  });
});

test('what is wrong with the command line', async () => {
  await fails(2, /needs an input and an output/, 'convert', path('r.arrow'));
  await fails(2, /the format of stdin is not known. Set --from: csv/, 'convert', '-', path('x.parquet'));
  await fails(2, /the format for stdout is not known\. Set --to: csv/, 'convert', ratings, '-');
  await fails(2, /Parquet cannot be written to stdout/, 'convert', ratings, '-', '--to', 'parquet');
  await fails(2, /codec acts only on parquet/, 'convert', ratings, path('x.csv'), '--codec', 'zstd');
  await fails(
    2,
    /delimiter acts only on text, and the input is parquet/,
    'convert',
    ratings,
    path('x.csv'),
    '--delimiter',
    ';',
  );
  await fails(2, /--types takes column=type/, 'convert', ratings, path('x.csv'), '--types', 'user=date');
  writeFileSync(path('mine.csv'), 'mine');
  await fails(2, /exists already/, 'convert', ratings, path('mine.csv'));
  const quiet = await factorflow('convert', ratings, path('mine.csv'), '--force', '--quiet');
  expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: '' });
  const { code, stdout } = await factorflow('convert', ratings, '-', '--to', 'csv', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({ command: 'convert', error: { exitCode: 2 } });
});

test('what is wrong with the data', async () => {
  writeFileSync(path('bad.csv'), 'user,item,rating\n1,2,3\n4,5\n');
  await fails(3, /bad\.csv\)/, 'convert', path('bad.csv'), path('x.parquet'));
  await fails(
    3,
    /line 3: the row has 2 fields, need 3: "4,5"/,
    'train',
    path('bad.csv'),
    '--model-dir',
    path('m'),
  );
  writeFileSync(path('unknown'), 'what is this');
  await fails(3, /the format is not known.*unknown\)\. Set --format: parquet/, 'inspect', path('unknown'));
  mkdirSync(path('mixed'));
  writeFileSync(path('mixed/a.csv'), 'user,item\n1,2\n');
  writeFileSync(path('mixed/b.parquet'), readFileSync(ratings));
  await fails(
    3,
    /this is parquet, and .*a\.csv is text \(.*b\.parquet\)/,
    'convert',
    path('mixed'),
    path('x.arrow'),
  );
});

test('commands that take ratings take other formats', async () => {
  await json('convert', ratings, path('ratings'), '--to', 'tsv');
  const fromText = await json(
    'train',
    path('ratings'),
    '--format',
    'tsv',
    '--model-dir',
    path('model'),
    ...quick,
    '--device',
    'cpu',
  );
  expect(fromText.ratings).toBe(original.rows.length);
  expect(readFileSync(join(path('model'), 'itemFactors/part-00000.parquet'))).toEqual(
    readFileSync(join(await trainedModel(), 'itemFactors/part-00000.parquet')),
  );
  const evaluated = await json('evaluate', path('model'), path('r.csv.gz'));
  expect(evaluated.pairs).toBe(original.rows.length);
  await json('predict', path('model'), path('r.arrow'), '--output', path('predicted.parquet'));
  expect((await readTable(new ParquetSource(path('predicted.parquet')))).columns).toContain(
    'prediction:Float32',
  );
  expect(await json('inspect', path('r.csv.gz'))).toMatchObject({
    rows: original.rows.length,
    files: 1,
    rowGroups: 0,
    ratings: original.rows.length,
  });
});

test('ratings from stdin are trained on', async () => {
  const csv = gunzipSync(readFileSync(path('r.csv.gz')));
  const { code, stderr } = await piped(
    csv,
    'train',
    '-',
    '--format',
    'csv',
    '--model-dir',
    path('from-stdin'),
    '--quiet',
    ...quick,
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const again = await piped(
    csv,
    'train',
    '-',
    '--format',
    'csv',
    '--test-fraction',
    '0.1',
    '--model-dir',
    path('twice'),
    '--quiet',
    ...quick,
  );
  expect(again.code).toBe(2);
  expect(again.stderr).toMatch(/stdin can be read only once/);
});

test('Parquet from a web server', async () => {
  const content = readFileSync(ratings);
  const server = createServer((request, response) => {
    const [, first, second] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const from = first === '' ? Math.max(0, content.length - Number(second)) : Number(first);
    const to = first === '' ? content.length : Math.min(content.length, Number(second) + 1);
    response
      .writeHead(206, { 'Content-Range': `bytes ${from}-${to - 1}/${content.length}` })
      .end(content.subarray(from, to));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  try {
    const told = await json(
      'convert',
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/r.parquet`,
      path('web.arrow'),
    );
    expect(told.rows).toBe(original.rows.length);
  } finally {
    server.close();
  }
});
