import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { refusals, argv, factorflow, fails, json, ratings, trainedModel, writeParquet } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const model = await trainedModel();

describe('outputs of predict and recommend', () => {
  it('have the format of the ending', async () => {
    const pairs = await writeParquet(
      join(folder, 'some-pairs.parquet'),
      `(SELECT "user", item FROM '${ratings}' LIMIT 3) UNION ALL SELECT -1, 1 UNION ALL SELECT -2, 1`,
    );
    const text = await factorflow('predict', model, pairs, '--output', join(folder, 'p.csv'), '--quiet');
    expect(text.stdout).toMatch(/predictions +5\n +cold pairs +2 with an unknown user or item \(NaN\)/);
    expect(readFileSync(join(folder, 'p.csv'), 'utf8')).toMatch(/^user,item,prediction\n/);
    await json('recommend', model, '--output', join(folder, 'r.csv'), '--users', '1,2', '--n', '3');
    const lines = readFileSync(join(folder, 'r.csv'), 'utf8').split('\n');
    expect(lines.map((line) => line.split(',')[1])).toEqual([
      'rank',
      '1',
      '2',
      '3',
      '1',
      '2',
      '3',
      undefined,
    ]);
    await json('recommend', model, '--output', join(folder, 'v1.2'), '--users', '1,2', '--n', '3');
    expect(readdirSync(join(folder, 'v1.2'))).toEqual(['part-00000.parquet']);
  });

  it('are refused for an unknown ending, and where a flag cannot be used', async () => {
    const unknown =
      /p\.\S+: the extension does not name a format\. Give \.parquet, \.csv, \.tsv, \.ndjson, \.arrow, or a folder name without an ending/;
    for (const name of ['p.xlsx', 'p.json', 'p.parquet.gz', 'p.pq'])
      for (const command of [argv`predict ${model} ${ratings} --output`, argv`recommend ${model} --output`])
        await fails(2, unknown, ...command, join(folder, name));
    await fails(2, unknown, 'convert', ratings, join(folder, 'p.pq'));
    for (const [args, pattern] of refusals`
      predict ${model} ${ratings} --output ${join(folder, 'c.csv')} --codec zstd | codec acts only on parquet, and the output is text
      recommend ${model} --output ${join(folder, 'c.arrow')} --codec snappy | Arrow has no codec snappy.*Use one of: uncompressed, lz4, zstd
      recommend ${model} --output - | the format for stdout is not known\. Set --to: csv
    `)
      await fails(2, pattern, ...args);
  });
});

describe('recommend', () => {
  it('writes the best items of all users', async () => {
    const output = join(folder, 'recommendations');
    const report = await json('recommend', model, '--output', output, '--n', '3');
    expect(report).toMatchObject({ command: 'recommend', users: 16_554, n: 3, rows: 3 * 16_554, output });
    expect(await json('inspect', output)).toMatchObject({
      rows: 3 * 16_554,
      columns: ['user', 'rank', 'item', 'prediction'].map((name) => ({ name })),
    });
  });

  it('prints a table for a few users', async () => {
    const { code, stdout, stderr } = await factorflow(
      ...argv`recommend ${model} --users ${'2, 1'} --n 4 --exclude ${ratings} --quiet`,
    );
    expect(code).toBe(0);
    expect(stderr).toBe('');
    expect(stdout).toContain('prediction');
    expect(stdout.split('\n').filter((line) => /│ +[1-4] │/.test(line))).toHaveLength(8);
  });

  it('gives a few users in JSON, without what is excluded', async () => {
    const report = await json('recommend', model, '--users', '1', '--n', '5');
    expect(report).not.toHaveProperty('unknownExcluded');
    const rows = report.recommendations as { user: number; rank: number; item: number }[];
    expect(rows.map(({ user, rank }) => [user, rank])).toEqual([1, 2, 3, 4, 5].map((rank) => [1, rank]));
    const seen = await writeParquet(
      join(folder, 'seen.parquet'),
      `SELECT 1::INTEGER AS "user", ${rows[0].item}::INTEGER AS item, 1::FLOAT AS rating`,
    );
    const others = await json('recommend', model, '--users', '1', '--n', '4', '--exclude', seen);
    expect(others).toMatchObject({
      recommendations: rows.slice(1).map(({ item }) => ({ item })),
      unknownExcluded: 0,
      warnings: [],
    });
  });
});

describe('recommend, of lists and unknown users', () => {
  it('warns where --exclude has other ids, and counts its unknown pairs', async () => {
    const strangers = await writeParquet(
      join(folder, 'other-ids.parquet'),
      `SELECT 900000000 + "user" AS "user", item, rating FROM '${ratings}' LIMIT 50`,
    );
    const args = argv`recommend ${model} --users 1 --n 3 --exclude ${strangers}`;
    const text =
      'no pair of --exclude is known to the model: 50 pairs of unknown users or items, which exclude nothing. Check the ids, --user-col and --item-col';
    expect(await json(...args)).toMatchObject({
      unknownExcluded: 50,
      warnings: [{ code: 'unknown-exclusions', text }],
    });
    expect((await factorflow(...args, '--quiet')).stderr).toBe(`factorflow: warning: ${text}\n`);
  });

  it('tells how numbers in a CSV are read where ids are texts', async () => {
    const [rated, texts] = [join(folder, 'numbers.csv'), join(folder, 'texts')];
    writeFileSync(rated, 'user,item,rating\n1,1,3\n2,1,4\n1,2,5\n');
    await json(
      ...argv`train ${rated} --types user=utf8,item=utf8 --rank 2 --max-iter 1 --model-dir ${texts}`,
    );
    const args = ['recommend', texts, '--output', join(folder, 'lists.csv'), '--exclude', rated, '--n', '1'];
    await fails(
      3,
      /ids are int32 here, but utf8 .*\(column "user"\)\. Where a CSV or NDJSON file holds numbers, --types reads them as text/,
      ...args,
    );
    expect(await json(...args, '--types', 'user=utf8,item=utf8')).toMatchObject({ rows: 1 });
  });

  it('keeps to the lists allow and deny, and counts what they name in vain', async () => {
    const { recommendations } = await json('recommend', model, '--users', '1', '--n', '3');
    const [first, second, third] = (recommendations as { item: number }[]).map(({ item }) => item);
    const report = await json(
      ...argv`recommend ${model} --users 1 --n 3 --deny ${first},999999999 --allow ${third},${first},${second}`,
    );
    expect(report).toMatchObject({ users: 1, rows: 2, missing: 1, unknownUsers: [], unknownItems: 1 });
    expect(report.recommendations).toMatchObject([{ item: second }, { item: third }]);
  });

  it('names unknown users, who get nothing or what is popular', async () => {
    expect(await json('recommend', model, '--users', '999999999,1,x', '--n', '2')).toMatchObject({
      users: 3,
      rows: 2,
      unknownUsers: [999999999, 'x'],
    });
    const { code, stdout, stderr } = await factorflow(
      ...argv`recommend ${model} --users 999999999,1 --n 2 --unknown-users popular --json --quiet`,
    );
    expect([code, stderr]).toEqual([
      0,
      'factorflow: warning: 1 of 2 users is unknown to the model and gets the items with the most ratings\n',
    ]);
    expect((JSON.parse(stdout) as { recommendations: object[] }).recommendations).toMatchObject([
      { user: 1, fallback: false },
      { user: 1, fallback: false },
      { user: 999999999, fallback: true },
      { user: 999999999, fallback: true },
    ]);
    expect(
      (await factorflow('recommend', model, '--users', '999999999', '--unknown-users', 'popular', '--n', '1'))
        .stdout,
    ).toMatch(/999999999 │ +1 │ +\d+ │ \d+ ratings/);
  });

  it('prints 64-bit ids as numbers where all of a side are safe, else as text', async () => {
    const [wide, large] = [join(folder, 'wide-ids'), 2n ** 60n];
    const rated = await writeParquet(
      join(folder, 'wide-ids.parquet'),
      `SELECT "user"::BIGINT AS "user", item + ${large} AS item, rating FROM '${ratings}' LIMIT 2000`,
    );
    await json('train', rated, '--rank', '2', '--max-iter', '1', '--model-dir', wide);
    const report = await json('recommend', wide, '--users', '1,999999999', '--n', '1');
    const [{ item }] = report.recommendations as { item: string }[];
    expect(report).toMatchObject({
      unknownUsers: [999999999],
      recommendations: [{ user: 1, item: expect.stringMatching(/^11529215046\d+$/) }],
    });
    expect(await json('recommend', wide, '--items', item, '--n', '1')).toMatchObject({
      recommendations: [{ item, user: expect.any(Number) }],
    });
    expect(await json('similar', wide, '--item', item, '--n', '1')).toMatchObject({
      neighbours: [{ item, similar: expect.any(String) }],
    });
    expect(await json('explain', wide, rated, '--user', '1', '--item', item)).toMatchObject({
      user: 1,
      item,
      contributions: expect.arrayContaining([
        { item: expect.any(String), rating: expect.any(Number), share: expect.any(Number) },
      ]),
    });
  });

  it('finds users for items', async () => {
    expect(await json('recommend', model, '--items', '90735,123456789', '--n', '3')).toMatchObject({
      items: 2,
      rows: 3,
      recommendations: [{ item: 90735, rank: 1 }, { rank: 2 }, { rank: 3 }],
      warnings: [{ text: '1 of 2 items is unknown to the model and gets no users' }],
    });
    const output = join(folder, 'fans.csv');
    expect(await json('recommend', model, '--items', 'all', '--n', '1', '--output', output)).toMatchObject({
      rows: 10_506,
      missing: 0,
    });
    expect(readFileSync(output, 'utf8')).toMatch(/^item,rank,user,prediction\n/);
  });
});
