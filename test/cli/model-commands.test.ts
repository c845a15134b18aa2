import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  factorflow,
  fails,
  json,
  ratings,
  runHere,
  temporaryFolder,
  trainedModel,
  writeParquet,
} from './run-cli.ts';

const folder = temporaryFolder();
const model = await trainedModel();

describe.concurrent('evaluate', () => {
  it('gives RMSE and MAE with the number of pairs', async () => {
    const report = await json('evaluate', model, ratings);
    const errors = { rmse: expect.any(Number), mae: expect.any(Number) };
    expect(report).toEqual({
      command: 'evaluate',
      metrics: errors,
      baselines: { mean: errors, dampedMeans: errors },
      pairs: 100_000,
      coldPairs: 0,
      badRows: 0,
      warnings: [],
    });
  });

  it('warns of a model that is no better than means', async () => {
    const turned = await writeParquet(
      join(folder, 'turned.parquet'),
      `SELECT "user", item, (10 - rating)::FLOAT AS rating FROM '${ratings}'`,
    );
    expect(await json('evaluate', model, turned)).toMatchObject({
      warnings: [
        { code: 'no-better-than-means', text: expect.stringMatching(/test RMSE, .* is no better than/) },
      ],
    });
    const { stdout } = await factorflow('evaluate', model, turned, '--quiet');
    expect(stdout).toMatch(/\nwarning: the model's test RMSE, /);
  });

  it('prints the same as text', async () => {
    const { stdout, stderr } = await factorflow('evaluate', model, ratings, '--quiet');
    expect(stderr).toBe('');
    expect(stdout).toMatch(
      /RMSE +\d\.\d{4}; the mean 1\.\d{4}, damped means 1\.\d{4}\n +MAE .*\n +pairs +100,000\n +cold pairs +0.*\n$/,
    );
  });

  it('ends with exit code 3 where no pair is known', async () => {
    const strangers = await writeParquet(
      join(folder, 'strangers.parquet'),
      'SELECT -5::INTEGER AS "user", 1::INTEGER AS item, 3::FLOAT AS rating',
    );
    await fails(
      3,
      /nothing to measure: the model knows none of the 1 pairs.*\. Check that the ids are of the kind .* --user-col and --item-col/,
      'evaluate',
      model,
      strangers,
    );
    const ended = await runHere('evaluate', model, strangers, '--ranking', '--quiet');
    expect([ended.code, ended.stdout]).toEqual([3, '']);
    expect(ended.stderr).toMatch(
      /no user is left to rank: of 1 test pairs 1 have a user or an item that the model does not know.*\. Check that the ids/,
    );
  });

  it('warns once where most pairs are unknown', async () => {
    const mostly = await writeParquet(
      join(folder, 'mostly-cold.parquet'),
      `(SELECT 900000000 + "user" AS "user", item, rating FROM '${ratings}' LIMIT 80) UNION ALL (SELECT "user", item, rating FROM '${ratings}' LIMIT 20)`,
    );
    const { stderr, stdout } = await factorflow('evaluate', model, mostly, '--quiet');
    expect(stderr).toMatch(/^factorflow: warning: 80 of the test set's 100 pairs \(80 %\) are cold: .*\n$/);
    expect(stdout).not.toContain('are cold: ');
    const { warnings } = await json('evaluate', model, mostly);
    expect((warnings as { code: string }[]).map(({ code }) => code)).toContain('mostly-cold');
  });
});

describe.concurrent('evaluate --ranking', () => {
  it('gives metrics with intervals and baselines, as JSON and as a table', async () => {
    const test = await writeParquet(
      join(folder, 'ranked.parquet'),
      `(SELECT "user", item + 1 AS item, rating FROM '${ratings}' USING SAMPLE 500 ROWS (reservoir, 1)) UNION ALL SELECT -5, 1, 3 UNION ALL (SELECT "user", item, rating FROM '${ratings}' LIMIT 2)`,
    );
    const args = ['evaluate', model, test, '--ranking', '--k', '5,10', '--exclude', ratings];
    const report = await json(...args);
    expect(report).toMatchObject({
      command: 'evaluate',
      metrics: {
        'ndcg@5': expect.any(Number),
        'recall@10': expect.any(Number),
        'recall-min@10': expect.any(Number),
        mrr: expect.any(Number),
        'novelty@5': expect.any(Number),
      },
      pairs: 503,
      coldUsers: 1,
    });
    expect(report.leakedPairs).toBeGreaterThanOrEqual(2);
    expect(Object.keys(report.baselines as object)).toEqual(['popularity', 'itemMean']);
    expect((report.intervals as Record<string, number[]>)['ndcg@10']).toHaveLength(2);
    const { stdout, stderr } = await factorflow(...args, '--metrics', 'ndcg,mrr');
    expect(stdout).toMatch(
      /metric +model +95 % +popularity +item mean\n +ndcg@5 +0\.\d{4} +0\.\d{4} to 0\.\d{4} +0\.\d{4} +0\.\d{4}\n +ndcg@10 .*\n +mrr /,
    );
    expect(stdout).toMatch(
      /users +\d+; 1 others are unknown to the model\n +pairs +503\n +cold pairs +\d+ .*\n +leaked pairs +\d+ are excluded as well; not ranked/,
    );
    expect(stderr).toMatch(/warning: the model was trained to predict ratings \(RMSE\), not to rank/);
    expect(stderr).toMatch(/warning: .* test data has leaked into training/);
  });

  it('ranks given candidates, and some users, and warns of a model that popularity beats', async () => {
    const test = await writeParquet(
      join(folder, 'held.parquet'),
      `(SELECT "user", item + 1 AS item, rating FROM '${ratings}' USING SAMPLE 500 ROWS (reservoir, 1))`,
    );
    const candidates = await writeParquet(
      join(folder, 'candidates.parquet'),
      `SELECT DISTINCT "user", i.item FROM (SELECT "user" FROM '${test}'), (SELECT DISTINCT item FROM '${ratings}' ORDER BY item LIMIT 30) i UNION ALL SELECT -9, 1`,
    );
    const args = [
      'evaluate',
      model,
      test,
      '--ranking',
      '--candidates',
      candidates,
      '--exclude',
      ratings,
      '--metrics',
      'hit-rate,ndcg',
    ];
    const report = await json(...args, '--rank-users', '20');
    expect(report).toMatchObject({ users: 20, candidates: { coldPairs: 1, usersWithout: 0 } });
    expect(report.availableUsers).toBeGreaterThan(20);
    const { stdout, stderr } = await factorflow(...args, '--rank-users', 'all');
    expect(stdout).toMatch(
      /\n +users +\d+\n[^]*\n +candidates +[\d,]+; not ranked: 1 that the model does not know/,
    );
    expect(stderr).toContain('warning: 1 candidates have a user or an item that the model does not know');
    const full = await factorflow(
      'evaluate',
      model,
      test,
      '--ranking',
      '--exclude',
      ratings,
      '--rank-users',
      '20',
      '--quiet',
    );
    expect(full.stdout).toMatch(/\n +users +20 of \d+, drawn by the seed; --rank-users all ranks all\n/);
    expect(full.stdout).toMatch(
      /\nwarning: the model's ndcg@10, 0\.\d{4}, is no better than .* for rankings train ALS with --implicit\n$/,
    );
    expect(full.stderr).not.toContain('popularity');
  });

  it('ends with exit code 3 where no user is left', async () => {
    const ended = await runHere('evaluate', model, ratings, '--ranking', '--exclude', ratings, '--quiet');
    expect([ended.code, ended.stdout]).toEqual([3, '']);
    expect(ended.stderr).toMatch(
      /no user is left to rank: of 100,000 test pairs 100,000 are excluded as well.*\. Check that the test ratings are not among those of --exclude/,
    );
  });

  it('refuses flags that cannot act, and metrics that do not exist', async () => {
    await fails(2, /--exclude acts only with --ranking/, 'evaluate', model, ratings, '--exclude', ratings);
    await fails(
      2,
      /--cold-pairs acts only with --ranking/,
      'evaluate',
      model,
      ratings,
      '--cold-pairs',
      'miss',
    );
    await fails(
      2,
      /--metrics must be .*, got "ndgc"/,
      'evaluate',
      model,
      ratings,
      '--ranking',
      '--metrics',
      'ndcg,ndgc',
    );
    await fails(
      2,
      /--k must be a whole number from 1 to 10,000, got "0"/,
      'evaluate',
      model,
      ratings,
      '--ranking',
      '--k',
      '10,0',
    );
    await fails(
      2,
      /--candidates acts only with --ranking/,
      'evaluate',
      model,
      ratings,
      '--candidates',
      ratings,
    );
    await fails(
      2,
      /--rank-users acts only with --ranking/,
      'evaluate',
      model,
      ratings,
      '--rank-users',
      'all',
    );
    await fails(
      2,
      /--rank-users must be all or a whole number of 1 or more, got "0"/,
      'evaluate',
      model,
      ratings,
      '--ranking',
      '--rank-users',
      '0',
    );
    await fails(
      2,
      /--rank-users must be all or a whole number of 1 or more, got "some"/,
      'evaluate',
      model,
      ratings,
      '--ranking',
      '--rank-users',
      'some',
    );
    const [nameless, none] = [
      await writeParquet(join(folder, 'nameless.parquet'), 'SELECT 1 AS "user", 2 AS thing'),
      await writeParquet(join(folder, 'none.parquet'), `SELECT "user", item FROM '${ratings}' LIMIT 0`),
    ];
    for (const [candidates, message] of [
      [nameless, /\nfactorflow: .*"item".*\n$/],
      [none, /\nfactorflow: .*there are no candidates.*leave --candidates out.*\n$/],
    ] as const) {
      const { code, stdout, stderr } = await runHere(
        'evaluate',
        model,
        ratings,
        '--ranking',
        '--candidates',
        candidates,
        '--exclude',
        ratings,
        '--quiet',
      );
      expect([code, stdout]).toEqual([3, '']);
      expect(stderr).toMatch(message);
    }
  });
});

describe.concurrent('predict', () => {
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

describe.concurrent('outputs of predict and recommend', () => {
  it('have the format of the ending', async () => {
    const pairs = await writeParquet(
      join(folder, 'some-pairs.parquet'),
      `(SELECT "user", item FROM '${ratings}' LIMIT 3) UNION ALL SELECT -1, 1 UNION ALL SELECT -2, 1`,
    );
    const text = await factorflow('predict', model, pairs, '--output', join(folder, 'p.csv'), '--quiet');
    expect(text.stdout).toMatch(/predictions +5\n +cold pairs +2 with an unknown user or item \(NaN\)/);
    expect(readFileSync(join(folder, 'p.csv'), 'utf8')).toMatch(/^user,item,prediction\n/);
    const dropped = await factorflow(
      'predict',
      model,
      pairs,
      '--output',
      join(folder, 'p.tsv'),
      '--cold-start',
      'drop',
      '--quiet',
    );
    expect(dropped.stdout).toMatch(
      /predictions +3\n +cold pairs +2 with an unknown user or item \(left out\)/,
    );
    expect(readFileSync(join(folder, 'p.tsv'), 'utf8').split('\n')).toHaveLength(5);
    await json('recommend', model, '--output', join(folder, 'r.csv'), '--users', '1,2', '--n', '3');
    expect(
      readFileSync(join(folder, 'r.csv'), 'utf8')
        .split('\n')
        .map((line) => line.split(',')[1]),
    ).toEqual(['rank', '1', '2', '3', '1', '2', '3', undefined]);
    await json('recommend', model, '--output', join(folder, 'r.arrow'), '--users', '1,2', '--n', '3');
    expect(await json('inspect', join(folder, 'r.arrow'))).toMatchObject({ rows: 6 });
    await json('recommend', model, '--output', join(folder, 'v1.2'), '--users', '1,2', '--n', '3');
    expect(readdirSync(join(folder, 'v1.2'))).toEqual(['part-00000.parquet']);
  });

  it('are refused for an unknown ending, and where a flag cannot act', async () => {
    for (const name of ['p.xlsx', 'p.json', 'p.parquet.gz', 'p.pq']) {
      for (const command of [
        ['predict', model, ratings, '--output'],
        ['recommend', model, '--output'],
        ['convert', ratings],
      ]) {
        await fails(
          2,
          /p\.\S+: the ending tells no format\. Give \.parquet, \.csv, \.tsv, \.ndjson, \.arrow, or a folder name without an ending/,
          ...command,
          join(folder, name),
        );
      }
    }
    await fails(
      2,
      /codec acts only on parquet, and the output is text/,
      'predict',
      model,
      ratings,
      '--output',
      join(folder, 'c.csv'),
      '--codec',
      'zstd',
    );
    await fails(
      2,
      /Arrow has no codec snappy.*Use one of: uncompressed, lz4, zstd/,
      'recommend',
      model,
      '--output',
      join(folder, 'c.arrow'),
      '--codec',
      'snappy',
    );
    await fails(2, /the format for stdout is not known\. Set --to: csv/, 'recommend', model, '--output', '-');
  });
});

describe.concurrent('recommend', () => {
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
      'recommend',
      model,
      '--users',
      '2, 1',
      '--n',
      '4',
      '--exclude',
      ratings,
      '--quiet',
    );
    expect(code).toBe(0);
    expect(stderr).toBe('');
    expect(stdout).toContain('prediction');
    expect(stdout.split('\n').filter((line) => /│ +[1-4] │/.test(line))).toHaveLength(8);
  });

  it('gives a few users in JSON, without what is excluded', async () => {
    const report = await json('recommend', model, '--users', '1', '--n', '5');
    const rows = report.recommendations as { user: number; rank: number; item: number; prediction: number }[];
    expect(rows.map(({ user, rank }) => [user, rank])).toEqual([1, 2, 3, 4, 5].map((rank) => [1, rank]));
    const seen = await writeParquet(
      join(folder, 'seen.parquet'),
      `SELECT 1::INTEGER AS "user", ${rows[0].item}::INTEGER AS item, 1::FLOAT AS rating`,
    );
    const others = await json('recommend', model, '--users', '1', '--n', '4', '--exclude', seen);
    expect((others.recommendations as { item: number }[]).map(({ item }) => item)).toEqual(
      rows.slice(1).map(({ item }) => item),
    );
  });
});

describe.concurrent('recommend, of lists and unknown users', () => {
  it('warns where --exclude has other ids, and counts its unknown pairs', async () => {
    const strangers = await writeParquet(
      join(folder, 'other-ids.parquet'),
      `SELECT 900000000 + "user" AS "user", item, rating FROM '${ratings}' LIMIT 50`,
    );
    const args = ['recommend', model, '--users', '1', '--n', '3', '--exclude'];
    const text =
      'no pair of --exclude is known to the model: 50 pairs of unknown users or items, which exclude nothing. Check the ids, --user-col and --item-col';
    expect(await json(...args, strangers)).toMatchObject({
      unknownExcluded: 50,
      warnings: [{ code: 'unknown-exclusions', text }],
    });
    expect((await factorflow(...args, strangers, '--quiet')).stderr).toBe(`factorflow: warning: ${text}\n`);
    expect(await json(...args, ratings)).toMatchObject({ unknownExcluded: 0, warnings: [] });
    expect(await json(...args.slice(0, -1))).not.toHaveProperty('unknownExcluded');
  });

  it('tells how numbers in a CSV are read where ids are texts', async () => {
    const [rated, texts] = [join(folder, 'numbers.csv'), join(folder, 'texts')];
    writeFileSync(rated, 'user,item,rating\n1,1,3\n2,1,4\n1,2,5\n');
    await json(
      'train',
      rated,
      '--types',
      'user=utf8,item=utf8',
      '--rank',
      '2',
      '--max-iter',
      '1',
      '--model-dir',
      texts,
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
    const rows = (await json('recommend', model, '--users', '1', '--n', '3')).recommendations as {
      item: number;
    }[];
    const [first, second, third] = rows.map(({ item }) => item);
    const report = await json(
      'recommend',
      model,
      '--users',
      '1',
      '--n',
      '3',
      '--deny',
      `${first},999999999`,
      '--allow',
      `${third},${first},${second}`,
    );
    expect(report).toMatchObject({ users: 1, rows: 2, missing: 1, unknownUsers: [], unknownItems: 1 });
    expect((report.recommendations as { item: number }[]).map(({ item }) => item)).toEqual([second, third]);
    expect(await json('recommend', model, '--users', '1', '--n', '3', '--allow', '999999999')).toMatchObject({
      rows: 0,
      missing: 3,
      recommendations: [],
    });
  });

  it('names unknown users, who get nothing or what is popular', async () => {
    expect(await json('recommend', model, '--users', '999999999,1,x', '--n', '2')).toMatchObject({
      users: 3,
      rows: 2,
      unknownUsers: [999999999, 'x'],
    });
    const { code, stdout, stderr } = await factorflow(
      'recommend',
      model,
      '--users',
      '999999999,1',
      '--n',
      '2',
      '--unknown-users',
      'popular',
      '--json',
      '--quiet',
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
    expect(await json('similar', wide, '--user', '1', '--n', '1')).toMatchObject({
      neighbours: [{ user: 1, similar: expect.any(Number) }],
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
    const report = await json('recommend', model, '--items', '90735', '--n', '3');
    expect(report).toMatchObject({
      items: 1,
      rows: 3,
      recommendations: [{ item: 90735, rank: 1 }, { rank: 2 }, { rank: 3 }],
    });
    const output = join(folder, 'fans');
    expect(await json('recommend', model, '--items', 'all', '--n', '2', '--output', output)).toMatchObject({
      rows: 2 * 10_506,
      missing: 0,
    });
    expect(await json('inspect', output)).toMatchObject({
      columns: ['item', 'rank', 'user', 'prediction'].map((name) => ({ name })),
    });
    await fails(2, /the model has no item 123456789/, 'recommend', model, '--items', '123456789');
  });
});

describe.concurrent('fold-in and export', () => {
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

describe.concurrent('explain', () => {
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
      /the ratings have none of user unseen/,
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

describe.concurrent('similar', () => {
  it('prints the items or users most like some', async () => {
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

  it('needs one side, and ids that the model knows', async () => {
    await fails(2, /give either --item or --user/, 'similar', model);
    await fails(2, /give either --item or --user/, 'similar', model, '--item', '90735', '--user', '1');
    await fails(2, /the model has no item 123456789/, 'similar', model, '--item', '123456789');
  });
});
