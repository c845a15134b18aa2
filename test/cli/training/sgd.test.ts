/** --algorithm sgd and auto, and updates of models, on the command line. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { refusals, argv, factorflow, fails, json, ratings, writeParquet } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';

const folder = temporaryFolder();
const model = join(folder, 'model');
const quick = ['--rank', '4', '--max-iter', '3', '--device', 'cpu'];

const metadataOf = (directory: string) =>
  JSON.parse(readFileSync(join(directory, 'metadata/part-00000'), 'utf8')) as Record<string, unknown>;

let report: Record<string, unknown>;
beforeAll(async () => {
  report = await json(
    ...argv`train ${ratings} --model-dir ${model} --algorithm sgd --test-fraction 0.1
    --schedule wavefront --reg-param-items 0.2 ${quick}`,
  );
});

describe('train --algorithm sgd', () => {
  it('reports like ALS, and saves a model in the same layout with sgd in its metadata', () => {
    expect(report).toMatchObject({
      command: 'train',
      algorithm: 'sgd',
      device: 'cpu',
      iterations: { length: 3 },
      testRmse: expect.any(Number),
      baselines: expect.any(Object),
      model,
    });
    expect(metadataOf(model)).toMatchObject({
      class: 'org.apache.spark.ml.recommendation.ALSModel',
      rank: 6,
      factorflow: {
        algorithm: 'sgd',
        params: { schedule: 'wavefront', regParam: 0.02, regParamItems: 0.2 },
        iterations: { length: 3 },
      },
    });
  });

  it('prints its schedule and collisions, and a summary', async () => {
    const { code, stdout, stderr } = await factorflow(
      ...argv`train ${ratings} --model-dir ${join(folder, 'text')} --algorithm sgd --schedule hogwild
      --workers 2 ${quick}`,
    );
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /schedule hogwild: s = 2 workers.*a twentieth of it is 525; expected collisions s Σ \(n_v\/Nz\)² = \d\.\de-\d a step/,
    );
    expect(stdout).toMatch(/^Trained SGD, rank 4, λ 0\.02: 3 epochs in /);
  });

  it('ends with 5 when it diverges', async () => {
    const { code, stdout, stderr } = await factorflow(
      ...argv`train ${ratings} --model-dir ${join(folder, 'diverged')} --algorithm sgd --learning-rate
      1e6 ${quick} --quiet`,
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
    const { stdout } = await factorflow(
      ...argv`train ${fresh} --init-model ${model} --model-dir ${updated} --learning-rate 0.02 --quiet`,
    );
    expect(stdout).toMatch(/^Updated by SGD, rank 4, .*: 2 epochs in /);
    const { users, items } = await json('inspect', updated);
    expect(users).toBeGreaterThan(report.users as number);
    expect(items).toBeGreaterThan(report.items as number);
    expect(metadataOf(updated)).toMatchObject({
      rank: 6,
      factorflow: { algorithm: 'sgd', params: { rank: 4, biases: true, learningRate: 0.02 } },
    });
  });

  it('is planned by the same line', async () => {
    const { code, stdout } = await factorflow(
      ...argv`plan ${ratings} --init-model ${model} --model-dir ${join(folder, 'unwritten')}
      --learning-rate 0.02`,
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Physical plan: sgd\n(.*\n)*.*epochs +2\n/);
    expect(stdout).toMatch(/training continues from a model.*\n(.*\n)*.*γ_t = 0\.02/);
    expect(existsSync(join(folder, 'unwritten'))).toBe(false);
    await fails(
      2,
      /--init-model acts only with paths of ratings/,
      ...argv`plan --users 9 --items 9 --ratings 20 --init-model ${model}`,
    );
  });

  it('names a model that is not there', async () => {
    await fails(
      3,
      /missing/,
      ...argv`train ${ratings} --init-model ${join(folder, 'missing')} --model-dir
      ${join(folder, 'x')}`,
    );
  });
});

describe('plans and flags of sgd', () => {
  describe('plan', () => {
    it('of sgd gives the order of visits, the workers and the collisions', async () => {
      const { code, stdout } = await factorflow(
        ...argv`plan ${ratings} --algorithm sgd --workers 2 ${quick}`,
      );
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Physical plan: sgd\n/);
      expect(stdout).toMatch(/11 +sgd-epoch +round +cpu +sgd-block blocks +8 x 8 +64 +3 /);
      expect(stdout).toMatch(/rate paper: γ_t = 0\.08 \/ \(1 \+ 0\.3 t\^1\.5\)/);
      expect(stdout).toMatch(
        /a block has one worker at a time; more than one would have to be far fewer than min\(⌊m\/i⌋, ⌊n\/j⌋\) = 1313/,
      );
    });

    it('without data, and with the measures of a run', async () => {
      const counts = await json(
        ...argv`plan --users 480189 --items 17770 --ratings 99072112 --algorithm sgd --schedule hogwild`,
      );
      expect(counts).toMatchObject({
        plan: {
          algorithm: 'sgd',
          round: expect.arrayContaining([expect.objectContaining({ name: 'sgd-epoch' })]),
        },
      });
      const analyzed = await json('plan', ratings, '--analyze', '--algorithm', 'sgd', ...quick);
      const { measured, sizes } = analyzed.plan as PhysicalPlan;
      expect(measured?.['sgd-epoch'].rows).toBe(3 * sizes.ratings);
    });

    it('with --algorithm auto gives the rule and its figures', async () => {
      const small = await factorflow('plan', ratings, '--algorithm', 'auto', ...quick);
      expect(small.stdout).toMatch(
        /^Physical plan: als\n(.|\n)*algorithm auto: als, since the longer side has 6\.0 ratings a row/,
      );
      const large = await factorflow(
        ...argv`plan --users 138493 --items 27278 --ratings 18000000 --rank 64 --algorithm auto --device
      cpu`,
      );
      expect(large.stdout).toMatch(
        /^Physical plan: sgd\n(.|\n)*algorithm auto: sgd; an iteration of ALS takes about .* s, 2 epochs of SGD, which do as much/,
      );
    });
  });

  describe('train --algorithm auto', () => {
    it('trains by its choice, and gives the reason', async () => {
      const { code, stdout, stderr } = await factorflow(
        ...argv`train ${ratings} --model-dir ${join(folder, 'auto')} --algorithm auto ${quick}`,
      );
      expect(code).toBe(0);
      expect(stderr).toContain('algorithm auto: als, since');
      expect(stdout).toMatch(/^Trained ALS/);
    });
  });

  describe('flags that cannot be used exit with 2', () => {
    const train = ['train', ratings, '--model-dir', join(folder, 'never')];
    it.each(refusals`
      --learning-rate 0.1 | --learning-rate cannot be used with --algorithm als. Give --algorithm sgd
      --algorithm als --reg-param-users 0.1 | --reg-param-users cannot be used with --algorithm als
      --algorithm sgd --solver cg | --solver cannot be used with --algorithm sgd. Give --algorithm als
      --algorithm sgd --nonnegative | --nonnegative cannot be used with --algorithm sgd
      --algorithm auto --schedule blocks | --schedule cannot be used with --algorithm auto
      --algorithm auto --cg-steps 2 | --cg-steps cannot be used with --algorithm auto
      --algorithm sgd --rate bold --decay 1 | --decay .* acts only with --rate paper, not with bold
      --algorithm sgd --rate fast | --rate must be paper, constant, bold or adagrad, got "fast"
      --algorithm sgd --schedule rows | --schedule must be auto, hogwild, wavefront, .*got "rows"
      --algorithm sgd --schedule tile --device cpu | schedule tile cannot be used on the CPU
      --algorithm sgd --precision f16 --device cpu | --precision f16 cannot be used with --device cpu, which computes in float32
      --algorithm sgd --learning-rate 0 | --learning-rate must be a number above 0
      --algorithm sgd --reg-param 1 --reg-param-users 1 --reg-param-items 1 | --reg-param has no effect together with
      --algorithm als --init-model m | --init-model cannot be used with --algorithm als
      --init-model m --rank 3 | --rank cannot be used with --init-model
      --init-model m --no-biases | --no-biases cannot be used with --init-model
      --init-model m --solver cg | --solver cannot be used with --algorithm sgd
      --algorithm ccd | --algorithm must be als, sgd or auto, got "ccd"
    `)('train %j', async (flags, pattern) => {
      await fails(2, pattern, ...train, ...flags);
    });
  });
});
