import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withTmpfs } from '../../support/tmpfs.ts';
import {
  expectFailure,
  factorflow,
  fails,
  json,
  quick,
  ratings,
  start,
  temporaryFolder,
} from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

describe('convert --partition-by', () => {
  it('writes folders that all commands read', async () => {
    expect(await json('convert', ratings, path('by-rating'), '--partition-by', 'rating')).toMatchObject({
      rows: 100_000,
    });
    expect(readdirSync(path('by-rating'))).toContain('rating=10.0');
    expect(await json('inspect', path('by-rating'))).toMatchObject({ rows: 100_000 });
    const train = (input: string, model: string) =>
      json('train', input, ...quick, '--seed', '1', '--model-dir', path(model));
    await train(ratings, 'model');
    await train(path('by-rating'), 'model-of-folders');
    const rmse = async (model: string) => (await json('evaluate', path(model), ratings)).rmse;
    expect(await rmse('model-of-folders')).toBe(await rmse('model'));
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
    ['all columns', ['--partition-by', 'user,item,rating,timestamp'], 3, /all columns are partition columns/],
    ['a column twice', ['--partition-by', 'user,user'], 2, /--partition-by names the column "user" twice/],
  ])('refuses %s', async (_, flags, code, message) => {
    await fails(code, message, 'convert', ratings, path('refused'), ...flags);
    expect(readdirSync(folder)).not.toContain('refused');
  });

  it('refuses stdout', async () => {
    await fails(
      2,
      /folders cannot be written to stdout/,
      'convert',
      ratings,
      '-',
      '--to',
      'csv',
      '--partition-by',
      'rating',
    );
  });

  const filesBelow = (output: string) => readdirSync(output, { recursive: true, encoding: 'utf8' }).sort();
  const killed = async (at: 'before' | 'after', ...args: readonly string[]) => {
    const { signal } = await start(['convert', ratings, ...args, '--quiet'], {
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
    await json('convert', ratings, output, '--partition-by', 'rating');
    expect(readdirSync(path('killed'))).toEqual(['out']);
  });

  it.each(['before', 'after'] as const)(
    'that is killed %s the old one is moved leaves that whole',
    async (at) => {
      const output = path(`replaced-${at}/out`);
      await json('convert', ratings, output, '--partition-by', 'rating', '--where', 'rating >= 9');
      const [before, { rows }] = [filesBelow(output), await json('inspect', output)];
      await killed(at, output, '--partition-by', 'item', '--where', 'item <= 1000', '--force');
      expect((await json('inspect', output)).rows).toBe(rows);
      expect(filesBelow(output)).toEqual(before);
      await json('convert', ratings, output, '--partition-by', 'rating', '--force');
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
      for (const format of ['csv', 'ndjson', 'arrow'])
        expectFailure(
          await factorflow(
            'convert',
            ratings,
            join(full, 'out'),
            '--to',
            format,
            '--partition-by',
            'rating',
            '--quiet',
          ),
          4,
          /the disk is full: the output needs more than .* are free \(.*full\/out\)/,
        );
      expect(readdirSync(full)).toEqual([]);
    });
  });
});
