import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factorflow, json, quick, ratings, temporaryFolder, writeParquet } from '../run-cli.ts';

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
    expect(Object.keys(report)).toEqual([
      'command',
      'algorithm',
      'device',
      'adapter',
      'users',
      'items',
      'ratings',
      'badRows',
      'duplicates',
      'iterations',
      'testRmse',
      'testMae',
      'coldPairs',
      'testPairs',
      'baselines',
      'ranking',
      'warnings',
      'seconds',
      'memory',
      'peakRssBytes',
      'model',
    ]);
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

  it('reports a best iteration that the model went past: in JSON, in the summary once, on the page', async () => {
    const [model, page] = [join(folder, 'past-best'), join(folder, 'past-best.html')];
    const over = [
      'train',
      ratings,
      '--test-fraction',
      '0.1',
      '--seed',
      '7',
      '--rank',
      '64',
      '--max-iter',
      '3',
      '--no-biases',
      '--model-dir',
      model,
    ];
    const text =
      /the best test RMSE, \d\.\d{4}, was after iteration 1, and the model's, \d\.\d{4}, is \d+\.\d % above it: .* Use --early-stop 2, which keeps the best/;
    expect((await json(...over, '--report', page)).warnings).toContainEqual({
      code: 'past-best',
      text: expect.stringMatching(text),
    });
    expect(readFileSync(page, 'utf8')).toMatch(/was after iteration 1, .* Use --early-stop 2,/);
    const { stdout, stderr } = await factorflow(...over, '--force');
    expect(stdout).toMatch(text);
    expect(stderr).not.toMatch(/best test RMSE/);
  });

  it('leaves test fields out without held-out ratings', async () => {
    const report = await json('train', ratings, ...quick, '--model-dir', join(folder, 'no-test'), '--quiet');
    expect(report).toMatchObject({ users: 16_554, items: 10_506, ratings: 100_000 });
    for (const name of ['testRmse', 'testMae', 'coldPairs', 'testPairs', 'baselines'])
      expect(report).not.toHaveProperty(name);
    expect((report.iterations as object[])[0]).not.toHaveProperty('testRmse');
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
      'train',
      ratings,
      '--model-dir',
      join(folder, 'configured'),
      '-c',
      config,
      '--max-iter',
      '1',
    );
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toHaveProperty('iterations.length', 1);
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
      'train',
      named,
      '--test',
      named,
      '--user-col',
      'u',
      '--item-col',
      'i',
      '--rating-col',
      'r',
      '--cold-start',
      'drop',
      ...quick,
      '--model-dir',
      model,
    );
    expect(report).toMatchObject({ ratings: 5000, coldPairs: 0 });
    expect(JSON.parse(readFileSync(join(model, 'metadata/part-00000'), 'utf8'))).toMatchObject({
      paramMap: { userCol: 'u', itemCol: 'i', coldStartStrategy: 'drop' },
    });
  });

  it('stops at the target and replaces a model with --force', async () => {
    const model = join(folder, 'target');
    const options = [
      'train',
      ratings,
      '--test-fraction',
      '0.1',
      '--rank',
      '4',
      '--max-iter',
      '20',
      '--target-rmse',
      '100',
      '--model-dir',
      model,
    ];
    expect((await json(...options)).iterations).toHaveLength(1);
    expect((await json(...options, '--force')).iterations).toHaveLength(1);
  });
});
