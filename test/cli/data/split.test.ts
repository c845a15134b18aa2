/** The command split: the parts of every split, the same parts as train's, and outputs that exist. */
import { DuckDBInstance } from '@duckdb/node-api';
import { readFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { splitOptions } from '../../../cli/options/data/held-out-options.ts';
import {
  refusals,
  argv,
  factorflow,
  fails,
  json,
  quick,
  ratings,
  writeParquet,
  temporariesIn,
} from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

interface Part {
  readonly name: string;
  readonly rows: number;
  readonly path: string;
}

const splitOf = async (output: string, ...flags: readonly string[]) =>
  (await json('split', ratings, '--output', path(output), ...flags)) as unknown as {
    readonly parts: readonly Part[];
    readonly output: string;
  };

/** The only value of a query. */
async function valueOf(query: string): Promise<unknown> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  const value = (await connection.runAndReadAll(query)).getRows()[0][0];
  connection.closeSync();
  instance.closeSync();
  return typeof value === 'bigint' ? Number(value) : value;
}

const count = (where: string) => valueOf(`SELECT count(*) FROM ${where}`);
const rowsOf = (name: string) => `'${path(name)}/*.parquet'`;

describe('split', () => {
  it('writes the parts that train holds out by the same flags', async () => {
    const flags = ['--test-fraction', '0.1', '--seed', '7'];
    const { parts } = await splitOf('random', ...flags);
    expect(parts.map(({ name, path: file }) => [name, file])).toEqual([
      ['train', path('random/train')],
      ['test', path('random/test')],
    ]);
    expect(
      await count(
        `(SELECT * FROM ${rowsOf('random/train')} UNION ALL SELECT * FROM ${rowsOf('random/test')})`,
      ),
    ).toBe(100_000);
    expect(
      await count(
        `(SELECT * FROM '${ratings}' EXCEPT (SELECT * FROM ${rowsOf('random/train')} UNION ALL SELECT * FROM ${rowsOf('random/test')}))`,
      ),
    ).toBe(0);
    const train = argv`--implicit ${quick} --seed 7 --device cpu --rank-users 500`;
    const drawn = await json(
      ...argv`train ${ratings} ${train} --test-fraction 0.1 --model-dir ${path('drawn')} --test-output
      ${path('held.csv')}`,
    );
    const written = await json(
      ...argv`train ${path('random/train')} ${train} --test ${path('random/test')} --model-dir
      ${path('written')}`,
    );
    expect(written.ranking).toEqual(drawn.ranking);
    expect(drawn.testOutput).toBe(path('held.csv'));
    expect(readFileSync(path('held.csv'), 'utf8').split('\n').length - 2).toBe(parts[1].rows);
    expect(
      readFileSync(path('written/userFactors/part-00000.parquet')).equals(
        readFileSync(path('drawn/userFactors/part-00000.parquet')),
      ),
    ).toBe(true);
    const evaluated = await json(
      ...argv`evaluate ${path('drawn')} ${path('random/test')} --ranking --exclude
      ${path('random/train')} --metrics ndcg --rank-users 500 --seed 7`,
    );
    const { metrics } = drawn.ranking as { readonly metrics: Readonly<Record<string, number>> };
    expect((evaluated.metrics as Readonly<Record<string, number>>)['ndcg@10']).toBeCloseTo(
      metrics['ndcg@10'],
      12,
    );
  });

  it('cuts by time, into three parts as well, and before a moment', async () => {
    await splitOf('newest', '--test-fraction', '0.1', '--validation-fraction', '0.2', '--test-by', 'time');
    const bounds = (await Promise.all(
      [
        ['max', 'train'],
        ['min', 'validation'],
        ['max', 'validation'],
        ['min', 'test'],
      ].map(([of, part]) => valueOf(`SELECT ${of}(timestamp) FROM ${rowsOf(`newest/${part}`)}`)),
    )) as number[];
    expect(bounds[0]).toBeLessThan(bounds[1]);
    expect(bounds[2]).toBeLessThan(bounds[3]);
    expect(await count(rowsOf('newest/test'))).toBeGreaterThanOrEqual(10_000);
    const { parts } = await splitOf('moment', '--before', String(bounds[3]));
    expect(parts.map(({ rows }) => rows)).toEqual([
      await count(`'${ratings}' WHERE timestamp < ${bounds[3]}`),
      await count(`'${ratings}' WHERE timestamp >= ${bounds[3]}`),
    ]);
    const read = (text: string) => splitOptions.before.read(text, '--before');
    expect(read('2024-06-01 02:00')).toEqual(new Date('2024-06-01T02:00:00Z'));
    expect(read('2024-06-01T02:00:00+05:30')).toEqual(new Date('2024-05-31T20:30:00Z'));
    const { stdout } = await factorflow(
      'split',
      ratings,
      '--output',
      path('dated'),
      '--before',
      '2013-03-01',
    );
    const later = Number(await count(`'${ratings}' WHERE timestamp >= ${Date.UTC(2013, 2, 1) / 1000}`));
    expect(stdout).toMatch(
      new RegExp(
        `\n {2}test +${later.toLocaleString('en-US')} rows, .*dated/test \\([\\d.]+ KiB\\)\n {2}time +`,
      ),
    );
    const ranks = await writeParquet(
      path('ranks.parquet'),
      `SELECT "user", item, rating, row_number() OVER () AS timestamp FROM '${ratings}'`,
    );
    await fails(
      2,
      /the column "timestamp" holds .*, whose unit is unknown/,
      ...argv`split ${ranks} --output ${path('ranked')} --before 2013-03-01`,
    );
    const dated = await writeParquet(
      path('dated.parquet'),
      `SELECT "user", item, rating, to_timestamp(timestamp) AS timestamp FROM '${ratings}'`,
    );
    const days = (await json(
      ...argv`split ${dated} --output ${path('days')} --before 2013-03-01`,
    )) as unknown as { readonly parts: readonly Part[] };
    expect(days.parts[1].rows).toBe(await count(`'${dated}' WHERE timestamp >= '2013-03-01 00:00:00+00'`));
  });

  it('leaves ratings of each user out, at random and the last', async () => {
    const { parts } = await splitOf('last', '--test-leave-out', '1', '--test-by', 'time');
    expect(parts[1].rows).toBe(
      await count(`(SELECT "user" FROM '${ratings}' GROUP BY "user" HAVING count(DISTINCT item) > 1)`),
    );
    expect(
      await count(
        `${rowsOf('last/train')} train JOIN ${rowsOf('last/test')} test USING ("user") WHERE train.timestamp > test.timestamp`,
      ),
    ).toBe(0);
    const [first, other] = [
      await splitOf('left', '--test-leave-out', '2', '--seed', '3'),
      await splitOf('other', '--test-leave-out', '2', '--seed', '4'),
    ];
    const bytes = (output: string) => readFileSync(path(`${output}/test/part-00000.parquet`));
    expect(bytes('other').equals(bytes('left'))).toBe(false);
    expect(other.parts[1].rows).toBe(first.parts[1].rows);
  });

  it('holds items out whole, and users', async () => {
    for (const [flag, id] of [
      ['--cold-items', 'item'],
      ['--cold-users', '"user"'],
    ]) {
      const { parts } = await splitOf(`whole-${id.length}`, flag, '0.2', '--seed', '3');
      expect(parts.map(({ name }) => name)).toEqual(['train', 'test']);
      expect(parts[0].rows + parts[1].rows).toBe(100_000);
      const [train, test] = ['train', 'test'].map((part) => rowsOf(`whole-${id.length}/${part}`));
      expect(await count(`${test} WHERE ${id} IN (SELECT ${id} FROM ${train})`)).toBe(0);
      expect(await count(`(SELECT DISTINCT ${id} FROM ${test})`)).toBeGreaterThan(100);
    }
  });

  it('writes folds, in another format', async () => {
    const { parts } = await splitOf('folds', '--folds', '2', '--to', 'csv');
    expect(parts.map(({ name }) => name)).toEqual(
      [1, 2].flatMap((fold) => [`fold-${fold}/train`, `fold-${fold}/test`]),
    );
    const rows = parts.map((part) => part.rows);
    expect([rows[0] + rows[1], rows[2] + rows[3], rows[1] + rows[3]]).toEqual(Array(3).fill(100_000));
    expect(await count(`'${path('folds/fold-2/test.csv')}'`)).toBe(rows[3]);
  });
});

describe('the output and the flags of split', () => {
  it('replaces an earlier split with --force alone, and leaves nothing of one that fails', async () => {
    const flags = ['split', ratings, '--output', path('kept')];
    await json(...flags, '--folds', '2');
    await fails(2, /the output exists already .*--force/, ...flags, '--test-fraction', '0.5');
    await json(...flags, '--test-fraction', '0.5', '--force');
    expect(readdirSync(path('kept')).sort()).toEqual(['test', 'train']);
    writeFileSync(path('kept/notes.md'), 'mine');
    await fails(
      2,
      /it holds "notes.md", which does not belong to this kind of output/,
      ...argv`${flags} --folds 2 --force`,
    );
    const broken = path('broken.csv');
    writeFileSync(broken, `user,item,rating\n${'1,2,3\n'.repeat(100_000)}1,2,x\n`);
    await fails(
      3,
      /broken\.csv/,
      ...argv`split ${broken} --output ${path('none')} --folds 2 --types rating=float32`,
    );
    expect(existsSync(path('none'))).toBe(false);
    expect(temporariesIn(folder)).toEqual([]);
  });

  it('refuses flags that name no split, two, or none that acts', async () => {
    const split = argv`split ${ratings} --output ${path('refused')}`;
    for (const [flags, pattern] of refusals`
      ${[]} | split needs a kind of split\. Give one of --test-fraction, --test-leave-out, --cold-items, --cold-users, --folds, --before
      --test-fraction 0.1 --folds 3 | --test-fraction and --folds exclude each other
      --folds 3 --validation-fraction 0.1 | --validation-fraction acts only with --test-fraction
      --test-fraction 0.5 --validation-fraction 0.5 | leave nothing to train on
      --folds 3 --test-by time | --test-by acts only with --test-fraction or --test-leave-out
      --test-fraction 0.1 --test-by time --seed 1 | --seed acts only on a split at random
      --folds 3 --timestamp-col timestamp | --timestamp-col acts only with --test-by time or --before
    `)
      await fails(2, pattern, ...split, ...flags);
    for (const wrong of ['soon', 'item 5', '2024-02-30', 'June 1 2024'])
      await fails(
        2,
        new RegExp(`--before must be a .* such as 2024-06-01, got "${wrong}"`),
        ...split,
        '--before',
        wrong,
      );
    await json('split', ratings, '--output', path('own'), '--test-fraction', '0.1');
    for (const [args, pattern] of refusals`
      split ${ratings} --folds 3 | --output is needed
      split - --output ${path('refused')} --folds 3 | stdin can be read only once
      split ${path('own/train')} --output ${path('own')} --folds 3 --force | the output would replace a folder that holds an input|is an input too|would be in a folder that is read
      train ${ratings} --model-dir ${path('refused')} --test ${ratings} --test-output ${path('x.csv')} | --test-output acts only with --test-fraction or --test-leave-out
    `)
      await fails(2, pattern, ...args);
    expect(existsSync(path('refused'))).toBe(false);
  });
});
