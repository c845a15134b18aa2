import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factorflow, fails, json, ratings, temporaryFolder, trainedModel, writeParquet } from './run-cli.ts';

const folder = temporaryFolder();
const model = await trainedModel();

describe('predict', () => {
  it('writes rows with predictions, and treats cold ones by the model or the flag', async () => {
    const pairs = await writeParquet(
      join(folder, 'pairs.parquet'),
      `(SELECT "user", item, 'a' AS note FROM '${ratings}' LIMIT 10) UNION ALL SELECT -1, 1, 'b'`,
    );
    const all = await json('predict', model, pairs, '--output', join(folder, 'all'));
    expect(all).toMatchObject({
      command: 'predict',
      rows: 11,
      coldPairs: 1,
      files: 1,
      output: join(folder, 'all'),
    });
    expect(readdirSync(join(folder, 'all'))).toEqual(['part-00000.parquet']);
    const warm = await json(
      'predict',
      model,
      pairs,
      '--output',
      join(folder, 'warm.parquet'),
      '--cold-start',
      'drop',
      '--codec',
      'snappy',
    );
    expect(warm).toMatchObject({ rows: 10, coldPairs: 1 });
    const inspected = await json('inspect', join(folder, 'warm.parquet'), '--rating-col', 'prediction');
    expect(inspected).toMatchObject({ rows: 10, ratings: 10 });
    expect(
      (inspected.columns as { name: string; codecs: string[] }[]).map(({ name, codecs }) => [name, codecs]),
    ).toEqual(['user', 'item', 'note', 'prediction'].map((name) => [name, ['snappy']]));
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
    await fails(2, /--output or --model-dir/, 'fold-in', model, users);
    await fails(
      2,
      /x\.csv cannot hold factors, which are lists of numbers\. Write Parquet or Arrow/,
      'fold-in',
      join(folder, 'no-model'),
      users,
      '--output',
      join(folder, 'x.csv'),
    );
    await fails(
      2,
      /--to acts only with --output/,
      'fold-in',
      model,
      users,
      '--model-dir',
      join(folder, 'nowhere'),
      '--to',
      'csv',
    );
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
    await fails(
      2,
      /there are no ratings of user unseen/,
      'explain',
      model,
      ratings,
      '--user',
      'unseen',
      '--item',
      '90735',
    );
    await fails(
      2,
      /the model has no item 123456789/,
      'explain',
      model,
      ratings,
      '--user',
      '2',
      '--item',
      '123456789',
    );
    await fails(2, /--item/, 'explain', model, ratings, '--user', '2');
  });
});

describe('similar', () => {
  it('prints the items or users most similar to given ones', async () => {
    const { code, stdout, stderr } = await factorflow(
      'similar',
      model,
      '--user',
      '1,2',
      '--n',
      '3',
      '--quiet',
    );
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/user .* rank .* similar user .* cosine/);
    expect(stdout.split('\n').filter((line) => /│ +[1-3] │/.test(line))).toHaveLength(6);
  });

  it('gives them as JSON, best first', async () => {
    const report = await json('similar', model, '--item', '90735', '--n', '4', '--similarity', 'dot');
    expect(report).toMatchObject({ command: 'similar', side: 'item', n: 4, similarity: 'dot' });
    const scores = (
      report.neighbours as { item: number; rank: number; similar: number; similarity: number }[]
    ).map((row) => row.similarity);
    expect(scores).toEqual(scores.toSorted((left, right) => right - left));
  });

  it('needs one side, and names ids that the model does not know', async () => {
    await fails(2, /give either --item or --user/, 'similar', model);
    await fails(2, /give either --item or --user/, 'similar', model, '--item', '90735', '--user', '1');
    const report = await json('similar', model, '--item', '90735,123456789', '--n', '1');
    expect(report).toMatchObject({ unknown: ['123456789'], neighbours: [{ item: 90735 }] });
  });
});
