import { readFileSync, writeFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, factorflow, json, quick, ratings, writeParquet, fewRatings, start } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { LostTrainingError } from '../../../api/training/lost-training.ts';
import { saveLostModel } from '../../../cli/sessions/run-training.ts';
import { ALS, DeviceLostError, Model, Session } from '../../../index.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';

const folder = temporaryFolder();
const training = ['train', ratings, '--test-fraction', '0.1', '--seed', '7', ...quick];

describe('train', () => {
  it('prints one JSON object with the documented names, and progress lines on stderr', async () => {
    const model = join(folder, 'json');
    const { code, stdout, stderr } = await factorflow(...training, '--model-dir', model, '--json');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\{.*\}\n$/);
    const report = JSON.parse(stdout) as Record<string, unknown> & {
      iterations: Record<string, unknown>[];
      seconds: Record<string, number>;
    };
    expect(Object.keys(report))
      .toEqual(argv`command algorithm device adapter users items ratings badRows duplicates iterations
      testRmse testMae coldPairs testPairs baselines ranking warnings seconds memory
      peakRssBytes model`);
    expect(report).toMatchObject({ command: 'train', algorithm: 'als', device: 'cpu', adapter: null, model });
    expect(report.iterations.map((iteration) => Object.keys(iteration))).toEqual([
      ['iteration', 'seconds', 'loss', 'trainRmse', 'fromSolve', 'testRmse'],
      ['iteration', 'seconds', 'loss', 'trainRmse', 'testRmse'],
    ]);
    expect(report.testRmse).toBe(report.iterations[1].testRmse);
    expect(Object.keys(report.seconds)).toEqual(['load', 'train', 'validation', 'total']);
    expect(report.peakRssBytes).toBeGreaterThan(2 ** 20);
    expect(stderr).toMatch(/^CPU: \d+ threads?, WebAssembly .*\nread: started/);
    expect(stderr).toMatch(/\niteration 2\/2: .*loss .*train RMSE .*test RMSE/);
    expect(stderr).toMatch(/\ntrain: finished, 2 iterations/);
    expect(JSON.parse(readFileSync(join(model, 'metadata/part-00000'), 'utf8'))).toMatchObject({
      rank: 6,
      factorflow: { rank: 4 },
    });
  });

  it('reports a best iteration that the model went past: in the summary once, and on the page', async () => {
    const page = join(folder, 'past-best.html');
    const { stdout, stderr } = await factorflow(
      ...argv`train ${ratings} --test-fraction 0.1 --seed 7 --rank 64 --max-iter 3 --no-biases
      --model-dir ${join(folder, 'past-best')} --report ${page}`,
    );
    expect(stdout).toMatch(
      /the best test RMSE, \d\.\d{4}, was after iteration 1, and the model's, \d\.\d{4}, is \d+\.\d % above it: .* Use --early-stop 2, which keeps the best/,
    );
    expect(stderr).not.toMatch(/best test RMSE/);
    expect(readFileSync(page, 'utf8')).toMatch(/was after iteration 1, .* Use --early-stop 2,/);
  });

  it('ends with a summary for people, and is quiet when asked', async () => {
    const model = join(folder, 'text');
    const { code, stdout, stderr } = await factorflow(...training, '--model-dir', model, '--quiet');
    expect(code).toBe(0);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^Trained ALS, rank 4/);
    for (const name of [
      'users',
      'items',
      'ratings',
      'train RMSE',
      'test RMSE',
      'the mean',
      'damped means',
      'test MAE',
      'test pairs',
      'cold pairs',
      'time',
      model,
    ])
      expect(stdout).toContain(name);
  });

  it('reads flags from a configuration in either spelling, and flags win', async () => {
    const config = join(folder, 'config.json');
    writeFileSync(
      config,
      JSON.stringify({ rank: 3, 'max-iter': 4, regParam: 0.3, biasDamping: [2, 4], quiet: true, json: true }),
    );
    const { stdout, stderr } = await factorflow(
      ...argv`train ${ratings} --model-dir ${join(folder, 'configured')} -c ${config} --max-iter 1`,
    );
    expect(stderr).toBe('');
    const report = JSON.parse(stdout) as { iterations: object[] };
    expect(report.iterations).toHaveLength(1);
    for (const name of ['testRmse', 'testMae', 'coldPairs', 'testPairs', 'baselines'])
      expect(report).not.toHaveProperty(name);
    expect(report.iterations[0]).not.toHaveProperty('testRmse');
    const metadata = JSON.parse(
      readFileSync(join(folder, 'configured/metadata/part-00000'), 'utf8'),
    ) as unknown;
    expect(metadata).toMatchObject({
      rank: 5,
      factorflow: { rank: 3, params: { regParam: 0.3, biasDamping: [2, 4] } },
    });
  });

  it('stores the cold-start strategy, takes other column names, and measures on a path', async () => {
    const named = await writeParquet(
      join(folder, 'named.parquet'),
      `SELECT "user" AS u, item AS i, rating AS r FROM '${ratings}' LIMIT 5000`,
    );
    const model = join(folder, 'columns');
    const report = await json(
      ...argv`train ${named} --test ${named} --user-col u --item-col i --rating-col r --cold-start
      drop ${quick} --model-dir ${model}`,
    );
    expect(report).toMatchObject({ ratings: 5000, coldPairs: 0 });
    expect(JSON.parse(readFileSync(join(model, 'metadata/part-00000'), 'utf8'))).toMatchObject({
      paramMap: { userCol: 'u', itemCol: 'i', coldStartStrategy: 'drop' },
    });
  });

  it('stops at the target and replaces a model with --force', async () => {
    const report = await json(
      ...argv`train ${ratings} --test-fraction 0.1 --rank 4 --max-iter 20 --target-rmse 100 --force
      --model-dir ${join(folder, 'text')}`,
    );
    expect(report.iterations).toHaveLength(1);
  });
});

describe('held-out ratings of train', () => {
  it('measures implicit data by rankings next to popularity, whose warning says what to try', async () => {
    const model = join(folder, 'implicit');
    const { stdout, stderr } = await factorflow(
      ...argv`${training} --implicit --weight spark --alpha 40 --reg-param 4 --model-dir ${model}
      --quiet`,
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
      ...argv`${training} --ranking --rank-users 300 --model-dir ${join(folder, 'ranked')} --quiet`,
    );
    expect(report).toMatchObject({
      ranking: { users: 300, availableUsers: expect.any(Number) as number, leakedPairs: 0 },
      testRmse: expect.any(Number) as number,
      warnings: [{ code: 'no-better-than-popularity' }],
    });
    expect(
      await json(
        ...argv`${training} --implicit --no-ranking --model-dir ${join(folder, 'unranked')} --quiet`,
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
        ...argv`train ${ratings} --model-dir ${join(folder, 'refused')} ${flags}`,
      );
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });

  it('reports null where a text file of held-out ratings has a header only', async () => {
    const empty = join(folder, 'empty.csv');
    writeFileSync(empty, 'user,item,rating\n');
    const report = await json(
      ...argv`train ${await fewRatings()} --test ${empty} ${quick} --model-dir ${join(folder, 'empty')}`,
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
      ...argv`train ${await fewRatings()} --test ${strangers} ${quick} --model-dir ${join(folder, 'strangers')}`,
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

describe('a GPU that is lost while training', () => {
  it('leaves its last model in the folder, and the error names it', async () => {
    await using session = await Session.create({ device: 'cpu', workers: 1 });
    const trained = await new ALS({ rank: 2, maxIter: 1 }).fit(
      session.from(ratingBatches(randomRatings(61, 20, 20, 200))),
    );
    const directory = join(folder, 'left');
    const lost = new LostTrainingError(new DeviceLostError('the GPU was lost', { phase: 'gpu' }), trained, 7);
    const saving = saveLostModel(Promise.reject(lost), directory, {
      overwrite: false,
      signal: new AbortController().signal,
    });
    await expect(saving).rejects.toThrow(
      `train: the GPU was lost; the model of iteration 7 is saved in ${directory}. Train again, or use --device cpu`,
    );
    await expect(saving).rejects.toMatchObject({ exitCode: 5 });
    expect((await Model.load(session, directory)).userCount).toBe(trained.userCount);
    // With checkpoints, the run that continues writes the model.
    const kept = join(folder, 'kept');
    const going = saveLostModel(
      Promise.reject(
        new LostTrainingError(
          new DeviceLostError('the GPU was lost', { phase: 'gpu' }),
          trained,
          7,
          'c/checkpoint-00000007',
        ),
      ),
      kept,
      { overwrite: false, signal: new AbortController().signal },
    );
    await expect(going).rejects.toThrow(
      'train: the GPU was lost; the last checkpoint is c/checkpoint-00000007. Continue from it with --resume, also with --device cpu',
    );
    await expect(going).rejects.toMatchObject({ exitCode: 5 });
    expect(existsSync(kept)).toBe(false);
  });
});

it('a training whose thread ends by itself goes on with another, to the same model', async () => {
  const train = (name: string, options: Parameters<typeof start>[1] = {}) =>
    start(
      argv`train ${ratings} --rank 64 --solver cholesky --max-iter 3 --device cpu --workers 2
        --quiet --model-dir ${join(folder, name)}`,
      options,
    ).outcome;
  const factors = (name: string) => readFileSync(join(folder, name, 'itemFactors/part-00000.parquet'));
  const mark = join(folder, 'ended');
  const ended = await train('ended-model', {
    nodeArgs: ['--import', join(import.meta.dirname, '../../support/faults/end-at-clock.mjs')],
    env: { FACTORFLOW_END_AT: '201', FACTORFLOW_END_MARK: mark },
  });
  expect(ended).toMatchObject({ code: 0 });
  expect(existsSync(mark)).toBe(true);
  expect(await train('model')).toMatchObject({ code: 0 });
  expect(factors('ended-model').equals(factors('model'))).toBe(true);
});
