import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test, describe, it } from 'vitest';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { readTable } from '../../connectors/text/text-testing.ts';
import {
  refusals,
  argv,
  factorflow,
  fewRatings,
  fails,
  json,
  piped,
  program,
  quick,
  ratings,
  expectFailure,
  start,
  trainedModel,
} from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { withTmpfs } from '../../support/tmpfs.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const few = await fewRatings();
const original = await readTable(new ParquetSource(few));

test('Parquet to CSV, Arrow and back: the same rows, and one JSON object', async () => {
  const told = await json('convert', few, path('r.csv.gz'));
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
  const arrow = await piped(undefined, 'convert', few, '-', '--to', 'arrow');
  expect(arrow).toMatchObject({ code: 0 });
  const csv = await piped(arrow.stdout, 'convert', '-', '-', '--from', 'arrow', '--to', 'csv', '--quiet');
  expect(csv).toMatchObject({ code: 0, stderr: '' });
  expect(csv.stdout.toString().split('\n').length).toBe(original.rows.length + 2);
  const { code } = await piped(csv.stdout, 'convert', '-', path('piped.parquet'), '--from', 'csv');
  expect(code).toBe(0);
  expect((await readTable(new ParquetSource(path('piped.parquet')))).rows).toHaveLength(original.rows.length);
  const twice = await piped(
    csv.stdout,
    ...argv`train - --format csv --test-fraction 0.1 --model-dir ${path('twice')} --quiet`,
  );
  expect(twice.code).toBe(2);
  expect(twice.stderr).toMatch(/stdin can be read only once/);
  const half = argv`convert - ${path('half.parquet')} --from arrow --quiet`;
  const cut = await piped(arrow.stdout.subarray(0, arrow.stdout.length - 1000), ...half);
  expect(cut.code).toBe(3);
  expect(cut.stderr).toMatch(/^factorflow: read: batch \d+: the data end in its middle \(stdin\)/);
  expect(() => readFileSync(path('half.parquet'))).toThrow(/ENOENT/);
  const unmarked = await piped(arrow.stdout.subarray(0, -8), ...half);
  expect(unmarked.code).toBe(3);
  expect(unmarked.stderr).toMatch(
    /the Arrow stream is cut off after \d+ batch(es)?: its end mark is missing \(stdin\)\. Write or send it again/,
  );
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
    ...argv`convert ${path('odd.txt')} ${path('odd.parquet')} --no-header --columns u,i,r
    --delimiter | --types u=utf8,r=float32`,
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
  for (const [args, pattern] of refusals`
    convert ${path('r.arrow')} | needs an input and an output
    convert - ${path('x.parquet')} | the format of stdin is not known. Set --from: csv
    convert ${ratings} - | the format for stdout is not known\. Set --to: csv
    convert ${ratings} - --to parquet | Parquet cannot be written to stdout
    convert ${ratings} ${path('x.csv')} --codec zstd | codec acts only on parquet
    convert ${ratings} ${path('x.csv')} --delimiter ; | delimiter acts only on text, and the input is parquet
    convert ${ratings} ${path('x.csv')} --types user=day | --types takes column=type
  `)
    await fails(2, pattern, ...args);
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
  for (const [args, pattern] of refusals`
    convert ${path('bad.csv')} ${path('x.parquet')} | bad\.csv\)
    train ${path('bad.csv')} --model-dir ${path('m')} | line 3: the row has 2 fields, need 3: "4,5"
  `)
    await fails(3, pattern, ...args);
  writeFileSync(path('unknown'), 'what is this');
  await fails(3, /the format is not known.*unknown\)\. Set --format: parquet/, 'inspect', path('unknown'));
  mkdirSync(path('mixed'));
  writeFileSync(path('mixed/a.csv'), 'user,item\n1,2\n');
  writeFileSync(path('mixed/b.parquet'), readFileSync(ratings));
  await fails(
    3,
    /this is parquet, and .*a\.csv is text \(.*b\.parquet\)/,
    ...argv`convert ${path('mixed')} ${path('x.arrow')}`,
  );
});

test('commands that take ratings take other formats', async () => {
  const trained = async (name: string, ...input: readonly string[]) => {
    const report = await json(...argv`train ${input} --model-dir ${path(name)} ${quick} --device cpu`);
    expect(report.ratings).toBe(original.rows.length);
    return readFileSync(path(`${name}/itemFactors/part-00000.parquet`));
  };
  await json('convert', few, path('ratings'), '--to', 'tsv');
  expect(await trained('model', path('ratings'), '--format', 'tsv')).toEqual(await trained('same', few));
  expect(await json('evaluate', path('model'), path('r.csv.gz'))).toMatchObject({
    pairs: original.rows.length,
  });
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

test('Parquet from a web server', async () => {
  const content = readFileSync(few);
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
      ...argv`convert http://127.0.0.1:${(server.address() as AddressInfo).port}/r.parquet
      ${path('web.arrow')}`,
    );
    expect(told.rows).toBe(original.rows.length);
  } finally {
    server.close();
  }
});

describe('partitions', () => {
  describe('convert --partition-by', () => {
    it('writes folders that all commands read', async () => {
      expect(await json('convert', few, path('by-rating'), '--partition-by', 'rating')).toMatchObject({
        rows: 2000,
      });
      expect(readdirSync(path('by-rating'))).toContain('rating=10.0');
      expect(await json('inspect', path('by-rating'))).toMatchObject({ rows: 2000 });
      const trained = async (input: string, model: string) => {
        await json(...argv`train ${input} ${quick} --seed 1 --model-dir ${path(model)}`);
        return readFileSync(path(`${model}/itemFactors/part-00000.parquet`));
      };
      expect(await trained(path('by-rating'), 'model-of-folders')).toEqual(
        await trained(few, 'model-of-file'),
      );
    });

    it('takes a format, conditions, and several columns', async () => {
      const to = path('tsv');
      const flags = ['--where', 'item = 68646 and user < 300', '--partition-by', 'item,rating'];
      await json('convert', ratings, to, '--to', 'tsv', ...flags);
      expect(readdirSync(to)).toEqual(['item=68646']);
      const [first] = readdirSync(join(to, 'item=68646'));
      expect(readFileSync(join(to, 'item=68646', first, 'part-00000.tsv'), 'utf8')).toMatch(
        /^user\ttimestamp\n\d+\t\d+\n/,
      );
      const back = path('back.csv');
      await json('convert', to, back, '--where', 'rating >= 9');
      const [header, row] = readFileSync(back, 'utf8').split('\n');
      expect(header).toBe('user,timestamp,item,rating');
      expect(row).toMatch(/^\d+,\d+,68646,(9|10)\.0$/);
    });

    it.each<[string, readonly string[], number, RegExp]>([
      [
        'a missing column',
        ['--partition-by', 'ratings'],
        2,
        /there is no column "ratings" to partition by\. Did you mean rating\?/,
      ],
      [
        'all columns',
        ['--partition-by', 'user,item,rating,timestamp'],
        3,
        /all columns are partition columns/,
      ],
      ['a column twice', ['--partition-by', 'user,user'], 2, /--partition-by names the column "user" twice/],
    ])('refuses %s', async (_, flags, code, message) => {
      await fails(code, message, 'convert', few, path('refused'), ...flags);
      expect(readdirSync(folder)).not.toContain('refused');
    });

    it('refuses stdout', async () => {
      await fails(
        2,
        /folders cannot be written to stdout/,
        ...argv`convert ${few} - --to csv --partition-by rating`,
      );
    });

    const filesBelow = (output: string) => readdirSync(output, { recursive: true, encoding: 'utf8' }).sort();
    const killed = async (at: 'before' | 'after', ...args: readonly string[]) => {
      const { signal } = await start(['convert', few, ...args, '--quiet'], {
        nodeArgs: ['--import', join(import.meta.dirname, '../../support/faults/die-at-call.mjs')],
        env: { FACTORFLOW_DIE_AT: `rename:1:${at}` },
      }).outcome;
      expect(signal).toBe('SIGKILL');
    };

    it('that is killed leaves what a reader passes over and the next run clears', async () => {
      const output = path('killed/out');
      await killed('before', output, '--partition-by', 'rating');
      expect(readdirSync(path('killed')).filter((name) => !name.startsWith('.'))).toEqual([]);
      await fails(3, /no such file or folder/, 'inspect', output);
      await json('convert', few, output, '--partition-by', 'rating');
      expect(readdirSync(path('killed'))).toEqual(['out']);
    });

    it.each(['before', 'after'] as const)(
      'that is killed %s the old one is moved leaves that whole',
      async (at) => {
        const output = path(`replaced-${at}/out`);
        await json('convert', few, output, '--partition-by', 'rating', '--where', 'rating >= 9');
        const [before, { rows }] = [filesBelow(output), await json('inspect', output)];
        await killed(at, output, '--partition-by', 'item', '--where', 'item <= 1000', '--force');
        expect((await json('inspect', output)).rows).toBe(rows);
        expect(filesBelow(output)).toEqual(before);
        await json('convert', few, output, '--partition-by', 'rating', '--force');
        expect(readdirSync(path(`replaced-${at}`))).toEqual(['out']);
      },
    );

    it('on a full disk exits with 4 and leaves nothing', async ({ skip }) => {
      mkdirSync(path('disks'));
      await withTmpfs(skip, path('disks/full'), 'size=256k', async (full) => {
        expectFailure(
          await factorflow('convert', ratings, join(full, 'out'), '--partition-by', 'rating', '--quiet'),
          4,
          /the disk is full: the output needs more than .* are free \(.*full\/out\)/,
        );
        for (const format of ['csv'])
          expectFailure(
            await factorflow(
              ...argv`convert ${ratings} ${join(full, 'out')} --to ${format} --partition-by rating --quiet`,
            ),
            4,
            /the disk is full: the output needs more than .* are free \(.*full\/out\)/,
          );
        expect(readdirSync(full)).toEqual([]);
      });
    });
  });
});

describe('formulas', () => {
  const input = path('in.csv');
  writeFileSync(
    input,
    'user,item,rating,=title\n1,2,-3.5,"=HYPERLINK(""http://x"")"\n3,4,5,-1\n5,6,1,plain\n',
  );
  const rows = [`1,2,-3.5,"'=HYPERLINK(""http://x"")"`, "3,4,5.0,'-1", '5,6,1.0,plain'];
  const escaped = `user,item,rating,'=title\n${rows.join('\n')}\n`;
  const onCpu = ['--device', 'cpu', '--workers', '1', '--quiet'];

  describe('--escape-formulas', () => {
    it('of convert, to stdout and to folders', async () => {
      const { stdout } = await start(['convert', input, '-', '--to', 'csv', '--escape-formulas', '--quiet'])
        .outcome;
      expect(stdout).toBe(escaped);
      await json('convert', input, path('by'), '--to', 'csv', '--partition-by', 'user', '--escape-formulas');
      expect(readFileSync(path('by/user=3/part-00000.csv'), 'utf8')).toBe("item,rating,'=title\n4,5.0,'-1\n");
    });

    it('of split, and of predict for the columns that it passes on', async () => {
      const parts = path('parts');
      await json('split', input, '--output', parts, '--folds', '2', '--to', 'csv', '--escape-formulas');
      const tests = [1, 2].map((fold) =>
        readFileSync(join(parts, `fold-${fold}/test.csv`), 'utf8').split('\n'),
      );
      expect(tests.map(([header]) => header)).toEqual(Array(2).fill("user,item,rating,'=title"));
      expect(tests.flatMap((lines) => lines.slice(1, -1)).sort()).toEqual(rows);
      const output = path('predicted.csv');
      const flags = ['--output', output, '--escape-formulas', ...onCpu];
      expect((await factorflow('predict', await trainedModel(), input, ...flags)).code).toBe(0);
      expect(readFileSync(output, 'utf8')).toMatch(
        /^user,item,rating,'=title,prediction\n1,2,-3\.5,"'=HYPERLINK/,
      );
    });

    it('of recommend, for titles', async () => {
      const [names, output] = [path('names.csv'), path('recommended.csv')];
      writeFileSync(names, 'item,title\n111161,@SUM(1)\n');
      const flags = ['--users', '26', '--allow', '111161', '--item-names', names, '--escape-formulas'];
      const { code } = await factorflow(
        ...argv`recommend ${await trainedModel()} ${flags} --output ${output} ${onCpu}`,
      );
      expect(code).toBe(0);
      expect(readFileSync(output, 'utf8')).toContain(",'@SUM(1),");
    });

    it('is refused for other formats, before anything is read', async () => {
      const refused = /--escape-formulas acts only on text, and the output is (parquet|ndjson|arrow)/;
      for (const output of ['x', 'x.parquet', 'x.ndjson', 'x.arrow'])
        await fails(2, refused, 'convert', input, path(output), '--escape-formulas');
      await fails(2, refused, 'convert', input, path('x'), '--partition-by', 'user', '--escape-formulas');
      const late = path('late.csv');
      writeFileSync(late, 'user,item,rating\n1,2\n');
      await fails(2, refused, 'split', late, '--output', path('x'), '--folds', '2', '--escape-formulas');
      expect(readdirSync(folder).filter((name) => name.startsWith('x'))).toEqual([]);
    });
  });

  it('escapeFormulas is an option of write.csv alone', async () => {
    const session = await cpuSession({ workers: 1 });
    const data = session.fromRows([{ user: 1, title: '=1' }]);
    await data.write.csv(path('api.csv'), { escapeFormulas: true });
    expect(readFileSync(path('api.csv'), 'utf8')).toBe("user,title\n1,'=1\n");
    await data.write.partitionBy('user').csv(path('api'), { escapeFormulas: true });
    expect(readFileSync(path('api/user=1/part-00000.csv'), 'utf8')).toBe("title\n'=1\n");
    await expect(data.write.ndjson(path('api.ndjson'), { escapeFormulas: true } as never)).rejects.toThrow(
      /unknown option escapeFormulas of write\.ndjson/,
    );
  });
});
