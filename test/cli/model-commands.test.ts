import { readdirSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, beforeAll } from 'vitest';
import {
  refusals,
  argv,
  factorflow,
  fails,
  json,
  ratings,
  trainedModel,
  writeParquet,
  expectFailure,
  objectOf,
} from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const model = await trainedModel();

describe('predict', () => {
  it('writes rows with predictions, and treats cold ones by the model or the flag', async () => {
    const pairs = await writeParquet(
      join(folder, 'pairs.parquet'),
      `(SELECT "user", item, 'a' AS note FROM '${ratings}' LIMIT 10) UNION ALL SELECT -1, 1, 'b'`,
    );
    const [all, warm] = [join(folder, 'all'), join(folder, 'warm.parquet')];
    expect(await json('predict', model, pairs, '--output', all)).toMatchObject({
      command: 'predict',
      rows: 11,
      coldPairs: 1,
      files: 1,
      output: all,
    });
    expect(readdirSync(all)).toEqual(['part-00000.parquet']);
    const { stdout } = await factorflow(
      ...argv`predict ${model} ${pairs} --output ${warm} --cold-start drop --codec snappy --quiet`,
    );
    expect(stdout).toMatch(/predictions +10\n +cold pairs +1 with an unknown user or item \(left out\)/);
    expect(await json('inspect', warm, '--rating-col', 'prediction')).toMatchObject({
      rows: 10,
      ratings: 10,
      columns: ['user', 'item', 'note', 'prediction'].map((name) => ({ name, codecs: ['snappy'] })),
    });
  });
});

describe('fold-in and export', () => {
  it('solves users from their ratings, for a model of them or as rows', async () => {
    const users = await writeParquet(
      join(folder, 'later.parquet'),
      `SELECT 700001::INTEGER AS "user", item, rating FROM read_parquet('${ratings}') WHERE "user" = 26 UNION ALL SELECT 700002, 999999999, 5`,
    );
    const [later, rows] = [join(folder, 'later-users'), join(folder, 'later-rows.parquet')];
    const report = await json('fold-in', model, users, '--model-dir', later, '--output', rows);
    expect(report).toMatchObject({
      command: 'fold-in',
      users: 1,
      withoutItems: 1,
      coldRatings: 1,
      model: later,
      output: rows,
    });
    expect(await json('recommend', later, '--users', '700001', '--n', '2')).toMatchObject({
      rows: 2,
      recommendations: [{ user: 700001, rank: 1 }, { rank: 2 }],
    });
    expect(await json('inspect', rows)).toMatchObject({
      rows: 1,
      columns: [{ name: 'id' }, { name: 'features' }],
    });
    for (const [args, pattern] of refusals`
      fold-in ${model} ${users} | --output or --model-dir
      fold-in ${join(folder, 'no-model')} ${users} --output ${join(folder, 'x.csv')} | x\.csv cannot hold factors, which are lists of numbers\. Write Parquet or Arrow
      fold-in ${model} ${users} --model-dir ${join(folder, 'nowhere')} --to csv | --to acts only with --output
    `)
      await fails(2, pattern, ...args);
  });

  it('writes factors for other programs', async () => {
    const output = join(folder, 'arrays');
    expect(await json('export', model, '--output', output)).toMatchObject({
      command: 'export',
      users: 16_554,
      items: 10_506,
      format: 'npy',
      precision: 'float32',
    });
    expect(readdirSync(output).sort()).toEqual([
      'item_factors.npy',
      'item_ids.npy',
      'user_factors.npy',
      'user_ids.npy',
    ]);
    await fails(2, /exists/, 'export', model, '--output', output);
    expect(
      await json('export', model, '--output', output, '--to', 'parquet', '--precision', 'float16', '--force'),
    ).toMatchObject({ precision: 'float16' });
  });
});

describe('explain', () => {
  it('takes a score apart, as JSON and as a table', async () => {
    const [{ item }] = (await json('recommend', model, '--users', '2', '--n', '1')).recommendations as {
      item: number;
    }[];
    const args = ['explain', model, ratings, '--user', '2', '--item', String(item), '--n', '2'];
    const report = await json(...args);
    const shares = report.contributions as { item: number; rating: number; share: number }[];
    expect(report).toMatchObject({
      command: 'explain',
      user: 2,
      item,
      modelScore: expect.any(Number),
      unknownItems: 0,
    });
    expect(shares.length).toBeGreaterThan(2);
    expect(shares.reduce((sum, { share }) => sum + share, report.base as number)).toBeCloseTo(
      report.score as number,
      6,
    );
    const { stdout } = await factorflow(...args, '--quiet');
    expect(stdout).toMatch(
      /score +\d+\.\d{4} of item \d+ for user 2\n +the model's own .*\n +base .*\n +ratings +\d+ ratings\n/,
    );
    expect(stdout.split('\n').filter((line) => /│ +\d+ │ +\d+ │ +-?\d\.\d{4} │/.test(line))).toHaveLength(2);
    expect(stdout).toMatch(new RegExp(`${shares.length - 2} others? │`));
  });

  it('names a user without ratings and an unknown item', async () => {
    for (const [args, pattern] of refusals`
      explain ${model} ${ratings} --user unseen --item 90735 | there are no ratings of user unseen
      explain ${model} ${ratings} --user 2 --item 123456789 | the model has no item 123456789
      explain ${model} ${ratings} --user 2 | --item
    `)
      await fails(2, pattern, ...args);
  });
});

describe('similar', () => {
  it('prints the items or users most similar to given ones', async () => {
    const { code, stdout, stderr } = await factorflow(...argv`similar ${model} --user 1,2 --n 3 --quiet`);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/user .* rank .* similar user .* cosine/);
    expect(stdout.split('\n').filter((line) => /│ +[1-3] │/.test(line))).toHaveLength(6);
  });

  it('gives them as JSON, best first, and names ids that the model does not know', async () => {
    const report = await json(...argv`similar ${model} --item 90735,123456789 --n 4 --similarity dot`);
    expect(report).toMatchObject({
      command: 'similar',
      side: 'item',
      n: 4,
      similarity: 'dot',
      unknown: ['123456789'],
      neighbours: [{ item: 90735 }, {}, {}, {}],
    });
    const scores = (report.neighbours as { similarity: number }[]).map(({ similarity }) => similarity);
    expect(scores).toEqual(scores.toSorted((left, right) => right - left));
  });

  it('needs one side', async () => {
    for (const [args, pattern] of refusals`
      similar ${model} | give either --item or --user
      similar ${model} --item 90735 --user 1 | give either --item or --user
    `)
      await fails(2, pattern, ...args);
  });
});

it('index writes files into the model, which recommend and similar search', async () => {
  const model = join(folder, 'model');
  cpSync(await trainedModel(), model, { recursive: true });
  const users = ['--users', '26,27,28', '--n', '5'];
  const item = ['--item', '111161', '--n', '5'];
  await fails(2, /no index for recommend.*factorflow index/s, 'recommend', model, ...users, '--index', 'on');
  expect(await json('index', model, '--lists', '40', '--recall', '0.9')).toMatchObject({
    command: 'index',
    model,
    indexes: [
      { search: 'recommend', lists: 40 },
      { search: 'similar', lists: 40 },
    ],
  });
  expect(readdirSync(join(model, 'itemIndex')).sort()).toEqual(['recommend.lists', 'similar.lists']);
  const lists = async (index: string) =>
    (await json('recommend', model, ...users, '--index', index)).recommendations;
  const exact = await lists('off');
  expect(await lists('40')).toEqual(exact);
  expect(await lists('on')).toHaveLength(15);
  const similar = async (index: string) =>
    (await json('similar', model, ...item, '--index', index)).neighbours;
  expect(await similar('40')).toEqual(await similar('off'));
  for (const [args, pattern] of refusals`
    similar ${model} ${item} --index 0 | --index must be auto, on, off or a number of lists
    similar ${model} --user 26 --index on | --index cannot be used with --user
    recommend ${model} --items 111161 --index on | --index acts only with
  `)
    await fails(2, pattern, ...args);
  const { stdout } = await factorflow('index', model, '--searches', 'similar', '--quiet', '--lists', '20');
  expect(stdout).toMatch(/similar +20 lists, \d+ searched: \d+\.\d % of the 20 best/);
});

describe('inspect of a model', () => {
  let model: string;
  beforeAll(async () => {
    model = await trainedModel();
  });

  /** A copy of the model that a test may change. */
  function copied(name: string): string {
    const copy = join(folder, name);
    cpSync(model, copy, { recursive: true });
    return copy;
  }

  async function inspected(...args: readonly string[]): Promise<Record<string, unknown>> {
    const { code, stdout, stderr } = await factorflow('inspect', ...args, '--json', '--quiet');
    expect([code, stderr]).toEqual([0, '']);
    return objectOf(stdout);
  }

  describe('inspect MODEL', () => {
    it('describes the model', async () => {
      const { code, stdout, stderr } = await factorflow('inspect', model);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout.replace(model, 'MODEL')).toMatch(
        /^MODEL: a model, ALS, rank 4 with biases, \d[\d.]* [KM]iB\n/,
      );
      expect(stdout).toMatch(
        /\n {2}users {7}\d[\d,]*, ids int32\n {2}items {7}\d[\d,]*, ids int32\n {2}ratings {5}100,000\n {2}iterations {2}2\n {2}metrics {5}train RMSE \d\.\d{4}\n {2}parameters {2}rank 4, max-iter 2, [^\n]*reg-param 0\.02[^\n]*\n {2}columns {5}user, item and rating; predictions in prediction\n {2}cold pairs {2}predicted as NaN\n$/,
      );
    });

    it('gives the same as JSON', async () => {
      expect(await inspected(model)).toMatchObject({
        command: 'inspect',
        model,
        algorithm: 'als',
        rank: 4,
        biases: true,
        users: expect.any(Number),
        items: expect.any(Number),
        ratings: 100_000,
        idTypes: { user: 'int32', item: 'int32' },
        params: { rank: 4, maxIter: 2, biases: true },
        iterations: 2,
        bestIteration: 2,
        metrics: { trainRmse: expect.any(Number) },
        warnings: [],
        columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
        coldStartStrategy: 'nan',
        bytes: expect.any(Number),
      });
    });

    it('counts users and items of a model without metadata of its own, as Spark writes them', async () => {
      const copy = copied('spark');
      const path = join(copy, 'metadata', 'part-00000');
      const {
        factorflow: _factorflow,
        checksum: _checksum,
        ...metadata
      } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
      writeFileSync(path, `${JSON.stringify(metadata)}\n`);
      const { users, items } = await inspected(model);
      expect(await inspected(copy)).toMatchObject({
        algorithm: null,
        rank: 6,
        biases: false,
        users,
        items,
        ratings: null,
        idTypes: { user: 'int32', item: 'int32' },
        params: {},
        metrics: {},
      });
      const { stdout } = await factorflow('inspect', copy);
      expect(stdout).toMatch(/: a model, factors, rank 6, /);
      expect(stdout).toMatch(/\n {2}trained by {2}another program, such as Spark; /);
    });

    it('names the part that is missing or damaged', async () => {
      const copy = copied('damaged');
      rmSync(join(copy, 'itemFactors'), { recursive: true });
      expectFailure(
        await factorflow('inspect', copy, '--quiet'),
        3,
        /this is not a model: the folder is missing \(.*itemFactors\)/,
      );
      const other = copied('metadata-damaged');
      writeFileSync(join(other, 'metadata', 'part-00000'), '{"class":');
      expectFailure(await factorflow('inspect', other, '--quiet'), 3, /the metadata are not JSON/);
    });

    it('refuses flags and paths of ratings', async () => {
      expectFailure(
        await factorflow('inspect', model, '--user-col', 'u'),
        2,
        /--user-col acts on ratings, and .* is a model\. Leave it out/,
      );
      expectFailure(await factorflow('inspect', model, model), 2, /is a model, which is inspected alone/);
    });
  });
});
