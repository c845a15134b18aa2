/** --algorithm sgd and auto, and updates of models, on the command line. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { factorflow, fails, json, ratings, temporaryFolder, writeParquet } from '../run-cli.ts';

const folder = temporaryFolder();
const model = join(folder, 'model');
const quick = ['--rank', '4', '--max-iter', '3', '--device', 'cpu'];

const metadataOf = (directory: string) =>
  JSON.parse(readFileSync(join(directory, 'metadata/part-00000'), 'utf8')) as Record<string, unknown>;

beforeAll(async () => {
  expect(
    (
      await factorflow(
        'train',
        ratings,
        '--model-dir',
        model,
        '--algorithm',
        'sgd',
        '--biases',
        ...quick,
        '--quiet',
      )
    ).code,
  ).toBe(0);
});

describe('train --algorithm sgd', () => {
  it('reports like ALS, and saves a model in the same layout with sgd in its metadata', async () => {
    const directory = join(folder, 'json');
    const report = await json(
      'train',
      ratings,
      '--model-dir',
      directory,
      '--algorithm',
      'sgd',
      '--test-fraction',
      '0.1',
      '--rate',
      'bold',
      '--schedule',
      'wavefront',
      '--reg-param-items',
      '0.2',
      ...quick,
    );
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
    expect(report).toMatchObject({
      command: 'train',
      algorithm: 'sgd',
      device: 'cpu',
      iterations: { length: 3 },
    });
    expect(metadataOf(directory)).toMatchObject({
      class: 'org.apache.spark.ml.recommendation.ALSModel',
      rank: 6,
      factorflow: {
        algorithm: 'sgd',
        params: { rate: 'bold', schedule: 'wavefront', regParam: 0.02, regParamItems: 0.2 },
        iterations: { length: 3 },
      },
    });
  });

  it('prints its schedule and collisions, and a summary', async () => {
    const { code, stdout, stderr } = await factorflow(
      'train',
      ratings,
      '--model-dir',
      join(folder, 'text'),
      '--algorithm',
      'sgd',
      '--schedule',
      'hogwild',
      '--workers',
      '2',
      ...quick,
    );
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /schedule hogwild: s = 2 workers.*a twentieth of it is 525; expected collisions s Σ \(n_v\/Nz\)² = \d\.\de-\d a step/,
    );
    expect(stdout).toMatch(/^Trained SGD, rank 4, λ 0\.02: 3 epochs in /);
  });

  it('gives the same files for a seed', async () => {
    const [one, two] = ['one', 'two'].map((name) => join(folder, name));
    for (const directory of [one, two])
      await json(
        'train',
        ratings,
        '--model-dir',
        directory,
        '--algorithm',
        'sgd',
        '--workers',
        '2',
        ...quick,
      );
    expect(readFileSync(join(one, 'userFactors/part-00000.parquet'))).toEqual(
      readFileSync(join(two, 'userFactors/part-00000.parquet')),
    );
  });

  it('ends with 5 when it diverges', async () => {
    const { code, stdout, stderr } = await factorflow(
      'train',
      ratings,
      '--model-dir',
      join(folder, 'diverged'),
      '--algorithm',
      'sgd',
      '--learning-rate',
      '1e6',
      ...quick,
      '--quiet',
    );
    expect([code, stdout]).toEqual([5, '']);
    expect(stderr).toMatch(
      /^(factorflow: warning: epoch 1 diverged.*half the learning rate, \d+\n){3}factorflow: train: epoch 1: the loss is .*Lower --learning-rate \(α\), which is .*, or raise --reg-param.*\n$/,
    );
    expect(existsSync(join(folder, 'diverged'))).toBe(false);
  });
});

describe('train --init-model', () => {
  it('goes on from a model, with new users and items', async () => {
    const fresh = await writeParquet(
      join(folder, 'fresh.parquet'),
      `(SELECT "user" + 900000000 AS "user", item, rating FROM '${ratings}' LIMIT 500) UNION ALL (SELECT "user", item + 900000000, rating FROM '${ratings}' LIMIT 500)`,
    );
    const updated = join(folder, 'updated');
    expect(
      (
        await factorflow(
          'train',
          fresh,
          '--init-model',
          model,
          '--model-dir',
          join(folder, 'told'),
          '--quiet',
        )
      ).stdout,
    ).toMatch(/^Updated by SGD, rank 4, /);
    const report = await json(
      'train',
      fresh,
      '--init-model',
      model,
      '--model-dir',
      updated,
      '--learning-rate',
      '0.02',
    );
    expect(report).toMatchObject({ algorithm: 'sgd', ratings: 1000, iterations: { length: 2 } });
    expect(report.users as number).toBeGreaterThan(16_554);
    expect(report.items as number).toBeGreaterThan(10_506);
    expect(metadataOf(updated)).toMatchObject({
      rank: 6,
      factorflow: { algorithm: 'sgd', params: { rank: 4, biases: true, learningRate: 0.02 } },
    });
  });

  it('is planned by the same line', async () => {
    const { code, stdout } = await factorflow(
      'plan',
      ratings,
      '--init-model',
      model,
      '--model-dir',
      join(folder, 'unwritten'),
      '--learning-rate',
      '0.02',
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Physical plan: sgd\n(.*\n)*.*epochs +2\n/);
    expect(stdout).toMatch(/training continues from a model.*\n(.*\n)*.*γ_t = 0\.02/);
    expect(existsSync(join(folder, 'unwritten'))).toBe(false);
    await fails(
      2,
      /--init-model acts only with paths of ratings/,
      'plan',
      '--users',
      '9',
      '--items',
      '9',
      '--ratings',
      '20',
      '--init-model',
      model,
    );
  });

  it('names a model that is not there', async () => {
    await fails(
      3,
      /missing/,
      'train',
      ratings,
      '--init-model',
      join(folder, 'missing'),
      '--model-dir',
      join(folder, 'x'),
    );
  });
});
