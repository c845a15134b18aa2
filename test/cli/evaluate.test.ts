import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { refusals, argv, factorflow, fails, json, ratings, trainedModel, writeParquet } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const model = await trainedModel();
/** Writes the rows of a query. */
const written = (name: string, query: string) => writeParquet(join(folder, `${name}.parquet`), query);

describe('evaluate', () => {
  it('gives RMSE and MAE with the number of pairs, as JSON and as text', async () => {
    const errors = { rmse: expect.any(Number), mae: expect.any(Number) };
    expect(await json('evaluate', model, ratings)).toEqual({
      command: 'evaluate',
      metrics: errors,
      baselines: { mean: errors, dampedMeans: errors },
      pairs: 100_000,
      coldPairs: 0,
      badRows: 0,
      warnings: [],
    });
    const { stdout, stderr } = await factorflow('evaluate', model, ratings, '--quiet');
    expect(stderr).toBe('');
    expect(stdout).toMatch(
      /RMSE +\d\.\d{4}; the mean 1\.\d{4}, damped means 1\.\d{4}\n +MAE .*\n +pairs +100,000\n +unknown pairs +0.*\n$/,
    );
  });

  it('warns of a model that is no better than means, and once where most pairs are unknown', async () => {
    const turned = await written(
      'turned',
      `SELECT "user", item, (10 - rating)::FLOAT AS rating FROM '${ratings}' LIMIT 1000`,
    );
    expect(await json('evaluate', model, turned)).toMatchObject({
      warnings: [
        { code: 'no-better-than-means', text: expect.stringMatching(/test RMSE, .* is no better than/) },
      ],
    });
    const mostly = await written(
      'mostly-cold',
      `(SELECT 900000000 + "user" AS "user", item, rating FROM '${ratings}' LIMIT 80) UNION ALL (SELECT "user", item, rating FROM '${ratings}' LIMIT 20)`,
    );
    const { stderr, stdout } = await factorflow('evaluate', model, mostly, '--quiet');
    expect(stderr).toMatch(/^factorflow: warning: 80 of the test set's 100 pairs \(80 %\) are cold: .*\n$/);
    expect(stdout).not.toContain('are cold: ');
  });

  it('ends with exit code 3 where no pair is known', async () => {
    const strangers = await written(
      'strangers',
      'SELECT -5::INTEGER AS "user", 1::INTEGER AS item, 3::FLOAT AS rating',
    );
    await fails(
      3,
      /nothing to measure: the model knows none of the 1 pairs.*\. Check that the ids are of the kind .* --user-col and --item-col/,
      ...argv`evaluate ${model} ${strangers}`,
    );
    const ended = await factorflow('evaluate', model, strangers, '--ranking', '--quiet');
    expect([ended.code, ended.stdout]).toEqual([3, '']);
    expect(ended.stderr).toMatch(
      /no user is left to rank: of 1 test pairs 1 have a user or an item that the model does not know.*\. Check that the ids/,
    );
  });
});

describe('evaluate --ranking', () => {
  it('gives metrics with intervals and baselines, as JSON and as a table', async () => {
    const test = await written(
      'ranked',
      `(SELECT "user", item + 1 AS item, rating FROM '${ratings}' USING SAMPLE 500 ROWS (reservoir, 1)) UNION ALL SELECT -5, 1, 3 UNION ALL (SELECT "user", item, rating FROM '${ratings}' LIMIT 2)`,
    );
    const args = argv`evaluate ${model} ${test} --ranking --k 5,10 --exclude ${ratings}`;
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
      /users +\d+; 1 others are unknown to the model\n +pairs +503\n +unknown pairs +\d+ .*\n +leaked pairs +\d+ are excluded as well; not ranked/,
    );
    expect(stderr).toMatch(/warning: the model was trained to predict ratings \(RMSE\), not to rank/);
    expect(stderr).toMatch(/warning: .* test data has leaked into training/);
  });

  it('ranks given candidates, and some users, and warns of a model that popularity beats', async () => {
    const test = await written(
      'held',
      `(SELECT "user", item + 1 AS item, rating FROM '${ratings}' USING SAMPLE 500 ROWS (reservoir, 1))`,
    );
    const candidates = await written(
      'candidates',
      `SELECT DISTINCT "user", i.item FROM (SELECT "user" FROM '${test}'), (SELECT DISTINCT item FROM '${ratings}' ORDER BY item LIMIT 30) i UNION ALL SELECT -9, 1`,
    );
    const args = argv`evaluate ${model} ${test} --ranking --exclude ${ratings}`;
    const { stdout, stderr } = await factorflow(...args, ...argv`--candidates ${candidates} --metrics ndcg`);
    expect(stdout).toMatch(
      /\n +users +\d+\n[^]*\n +candidates +[\d,]+; not ranked: 1 that the model does not know/,
    );
    expect(stderr).toContain('warning: 1 candidates have a user or an item that the model does not know');
    const full = await factorflow(...args, '--rank-users', '20', '--quiet');
    expect(full.stdout).toMatch(/\n +users +20 of \d+, drawn by the seed; --rank-users all ranks all\n/);
    expect(full.stdout).toMatch(
      /\nwarning: the model's ndcg@10, 0\.\d{4}, is no better than .* for rankings train ALS with --implicit\n$/,
    );
    expect(full.stderr).not.toContain('popularity');
  });

  it('ends with exit code 3 where no user is left', async () => {
    const ended = await factorflow('evaluate', model, ratings, '--ranking', '--exclude', ratings, '--quiet');
    expect([ended.code, ended.stdout]).toEqual([3, '']);
    expect(ended.stderr).toMatch(
      /no user is left to rank: of 100,000 test pairs 100,000 are excluded as well.*\. Check that the test ratings are not in the data set of --exclude/,
    );
  });

  it.each(refusals`
    --exclude ${ratings} | --exclude acts only with --ranking
    --cold-pairs miss | --cold-pairs acts only with --ranking
    --candidates ${ratings} | --candidates acts only with --ranking
    --rank-users all | --rank-users acts only with --ranking
    --ranking --metrics ndcg,ndgc | --metrics must be .*, got "ndgc"
    --ranking --k 10,0 | --k must be a whole number from 1 to 10,000, got "0"
    --ranking --rank-users 0 | --rank-users must be all or a whole number of 1 or more, got "0"
    --ranking --rank-users some | --rank-users must be all or a whole number of 1 or more, got "some"
  `)('refuses %j', async (flags, pattern) => {
    await fails(2, pattern, 'evaluate', model, ratings, ...flags);
  });

  it('refuses candidates without a column of items, or without rows', async () => {
    for (const [query, message] of [
      ['SELECT 1 AS "user", 2 AS thing', /\nfactorflow: .*"item".*\n$/],
      [
        `SELECT "user", item FROM '${ratings}' LIMIT 0`,
        /\nfactorflow: .*there are no candidates.*leave --candidates out.*\n$/,
      ],
    ] as const) {
      const candidates = await written('no-candidates', query);
      const { code, stdout, stderr } = await factorflow(
        ...argv`evaluate ${model} ${ratings} --ranking --candidates ${candidates} --exclude ${ratings} --quiet`,
      );
      expect([code, stdout]).toEqual([3, '']);
      expect(stderr).toMatch(message);
    }
  });
});
