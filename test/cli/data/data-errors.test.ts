import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  factorflow,
  fails,
  quick,
  ratings,
  temporaryFolder,
  trainedModel,
  writeParquet,
} from '../run-cli.ts';

const folder = temporaryFolder();
const models = join(folder, 'models');
let runs = 0;
const train = (path: string, ...flags: string[]) => [
  'train',
  path,
  ...quick,
  '--model-dir',
  join(models, String(runs++)),
  ...flags,
];

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
    await fails(
      3,
      /no column "film"; there are: user \(Int32\), item \(Int32\), rating \(Float32\), timestamp \(Int64\)/,
      ...train(ratings, '--item-col', 'film'),
    );
    await fails(3, /no column "film"/, 'inspect', ratings, '--item-col', 'film');
  });

  it('columns of the wrong type', async () => {
    const file = await writeParquet(
      join(folder, 'types.parquet'),
      'SELECT 1.5::DOUBLE AS "user", 1 AS item, \'good\' AS rating, 2 AS stars',
    );
    await fails(
      3,
      /1 bad row, the first in .*: user 1\.5 is not a whole number/,
      ...train(file, '--rating-col', 'stars'),
    );
    await fails(
      3,
      /1 bad row, the first in .*: rating "good" is not a number\. Clean the data/,
      ...train(file, '--user-col', 'stars'),
    );
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
    await fails(3, /no such file or folder/, 'evaluate', join(folder, 'missing'), ratings);
    await fails(3, /not a model/, 'evaluate', join(folder, 'empty'), ratings);
    await fails(3, /not a model/, 'recommend', ratings, '--users', '1');
  });

  it("ids that the model does not know are the caller's mistake", async () => {
    const model = await trainedModel();
    await fails(
      2,
      /no user 999999999/,
      'recommend',
      model,
      '--users',
      '999999999',
      '--unknown-users',
      'error',
    );
    await fails(2, /no user x/, 'recommend', model, '--users', 'x', '--unknown-users', 'error');
  });
});

describe('afterwards', () => {
  it('only the models of runs that succeeded remain, and nothing half-written', () => {
    const left = readdirSync(models);
    expect(left).toHaveLength(3);
    for (const name of left)
      expect(readdirSync(join(models, name)).sort()).toEqual([
        'itemCounts',
        'itemFactors',
        'itemMeans',
        'metadata',
        'userFactors',
        'userMeans',
      ]);
  });
});
