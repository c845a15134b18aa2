import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factorflow, json, quick, ratings, temporaryFolder, writeParquet } from '../run-cli.ts';

const folder = temporaryFolder();
const training = ['train', ratings, '--test-fraction', '0.1', '--seed', '7', ...quick];

describe('held-out ratings of train', () => {
  it('measures implicit data by rankings next to popularity, whose warning says what to try', async () => {
    const model = join(folder, 'implicit');
    const { stdout, stderr } = await factorflow(
      ...training,
      '--implicit',
      '--weight',
      'spark',
      '--alpha',
      '40',
      '--reg-param',
      '4',
      '--model-dir',
      model,
      '--quiet',
    );
    for (const name of ['ndcg@10', 'recall@20', 'hit-rate@10', 'coverage@10'])
      expect(stdout).toMatch(new RegExp(`\\n {2}test ${name} +0\\.\\d{4}; popularity 0\\.\\d{4}\\n`));
    expect(stdout).toMatch(/\n {2}ranked users +4,\d{3}\n/);
    expect(stdout).toMatch(/\n {2}time .* of it loading, .* s validation, .* s ranking;/);
    expect(stdout).toMatch(
      /\nwarning: the model's ndcg@10, .* by popularity, .* Try other values of --weight \(now spark\), --alpha \(now 40\), --reg-param \(now 4\), or search for them \(tune\)\n$/,
    );
    expect(stderr).not.toContain('popularity');
    expect(await factorflow('evaluate', model, ratings, '--quiet')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'implicit data have no RMSE. Measure rankings: --ranking --k 20 --exclude TRAIN',
      ),
    });
  });

  it('ranks held-out ratings of other data where that is asked for, by some users alone', async () => {
    const report = await json(
      ...training,
      '--ranking',
      '--rank-users',
      '300',
      '--model-dir',
      join(folder, 'ranked'),
      '--quiet',
    );
    expect(report).toMatchObject({
      ranking: { users: 300, availableUsers: expect.any(Number) as number, leakedPairs: 0 },
      testRmse: expect.any(Number) as number,
      warnings: [{ code: 'no-better-than-popularity' }],
    });
    expect(
      await json(
        ...training,
        '--implicit',
        '--no-ranking',
        '--model-dir',
        join(folder, 'unranked'),
        '--quiet',
      ),
    ).toHaveProperty('ranking', null);
    for (const [flags, message] of [
      [
        ['--test-fraction', '0.1', '--rank-users', '0'],
        '--rank-users must be all or a whole number of 1 or more, got "0"',
      ],
      [
        ['--test-fraction', '0.1', '--rank-users', 'many'],
        '--rank-users must be all or a whole number of 1 or more, got "many"',
      ],
      [['--ranking'], '--ranking needs held-out ratings'],
      [['--rank-users', 'all'], '--rank-users needs held-out ratings'],
      [
        ['--ranking', '--init-model', 'none', '--test-fraction', '0.1'],
        '--ranking cannot be used with --init-model',
      ],
    ] as const) {
      const { code, stderr } = await factorflow(
        'train',
        ratings,
        '--model-dir',
        join(folder, 'refused'),
        ...flags,
      );
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });

  it('reports null where a text file of held-out ratings has a header only', async () => {
    const empty = join(folder, 'empty.csv');
    writeFileSync(empty, 'user,item,rating\n');
    const report = await json(
      'train',
      ratings,
      '--test',
      empty,
      ...quick,
      '--model-dir',
      join(folder, 'empty'),
    );
    expect(report).toMatchObject({
      testRmse: null,
      coldPairs: 0,
      testPairs: 0,
      baselines: null,
      warnings: [{ code: 'cold-test', text: 'the validation set has no ratings; there is no test error' }],
    });
  });

  it('reports null where no held-out pair is known', async () => {
    const strangers = await writeParquet(
      join(folder, 'strangers.parquet'),
      `SELECT 900000000 + "user" AS "user", item, rating FROM '${ratings}' LIMIT 50`,
    );
    const report = await json(
      'train',
      ratings,
      '--test',
      strangers,
      ...quick,
      '--model-dir',
      join(folder, 'strangers'),
    );
    expect(report).toMatchObject({
      testRmse: null,
      testMae: null,
      coldPairs: 50,
      testPairs: 50,
      baselines: null,
      warnings: [{ code: 'cold-test' }],
    });
  });
});
