/** The command tune: its result, its files, an interruption, and flags without effect. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usualSpace } from '../../../cli/options/training/tune-options.ts';
import { expectFailure, factorflow, fails, objectOf, ratings, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const cpu = ['--device', 'cpu', '--workers', '1'];

interface Found {
  readonly number: number;
  readonly params: Readonly<Record<string, number>>;
  readonly value: number | null;
}

describe('tune', () => {
  it('gives the trials, the best and a model with its evidence, and a page', async () => {
    const { code, stdout, stderr } = await factorflow(
      'tune',
      ratings,
      '--model-dir',
      path('model'),
      '--try',
      'rank=2,4 reg-param=0.02,0.1',
      '--max-iter',
      '4',
      ...cpu,
      '--report',
      path('page.html'),
      '--json',
      '--quiet',
    );
    expect([code, stderr]).toEqual([0, '']);
    const { best, trials, metric } = objectOf(stdout) as unknown as {
      readonly best: Found;
      readonly trials: readonly Found[];
      readonly metric: string;
    };
    expect(metric).toBe('rmse');
    expect(trials.map(({ params }) => [params.rank, params.regParam])).toEqual([
      [2, 0.02],
      [2, 0.1],
      [4, 0.02],
      [4, 0.1],
    ]);
    expect(best.value).toBe(Math.min(...trials.map(({ value }) => value as number)));
    const metadata = JSON.parse(readFileSync(path('model/metadata/part-00000'), 'utf8')) as {
      readonly factorflow: { readonly params: object; readonly tuning: object };
    };
    expect(metadata.factorflow).toMatchObject({
      params: best.params,
      tuning: { best: best.number, metric: 'rmse' },
    });
    expect(existsSync(path('model.trials.ndjson'))).toBe(false);
    expect(readFileSync(path('page.html'), 'utf8')).toMatch(
      /rmse by trial[\s\S]*rmse by reg-param[\s\S]*Run it again/,
    );
  });

  it('ranks the validation ratings of implicit data next to popularity', async () => {
    const search = [
      'tune',
      ratings,
      '--implicit',
      '--try',
      'rank=2,4',
      '--max-iter',
      '2',
      '--rank-users',
      '200',
      ...cpu,
      '--quiet',
    ];
    const { code, stdout, stderr } = await factorflow(...search, '--model-dir', path('implicit'));
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /\n {2}test ndcg@10 +0\.\d{4}; popularity 0\.\d{4}\n[^]*\n {2}ranked users +200 of 4,\d{3}, drawn by the seed; --rank-users all ranks all\n/,
    );
    expect(stderr).toMatch(/warning: the best trial ranks no better than popularity.*larger --reg-param/);
    const found = objectOf(
      (await factorflow(...search, '--model-dir', path('implicit-json'), '--json')).stdout,
    );
    expect(found).toMatchObject({
      ranking: { users: 200, metrics: { 'ndcg@10': expect.any(Number) as number } },
      warnings: expect.arrayContaining([
        expect.objectContaining({ code: 'no-better-than-popularity' }),
      ]) as object[],
    });
  });

  it('prints a table from the best to the worst', async () => {
    const { code, stdout } = await factorflow(
      'tune',
      ratings,
      '--model-dir',
      path('table'),
      '--try',
      'rank=2 reg-param=0.001..1',
      '--trials',
      '5',
      '--search',
      'random',
      '--max-iter',
      '3',
      ...cpu,
      '--quiet',
    );
    expect(code).toBe(0);
    const found = [...stdout.matchAll(/^│ +\d+ │ +2 │ +([\d.e-]+) │ +([\d.]+) │/gm)].map(([, , value]) =>
      Number(value),
    );
    expect(found).toHaveLength(5);
    expect(found).toEqual(found.toSorted((a, b) => a - b));
    expect(stdout).toContain('best: trial');
  });

  it.each([
    ['--try', 'rnak=2', /ALS has no parameter rnak, which --try names/],
    ['--try', 'rank', /not a name with values/],
    ['--try', 'rank=2 rank=3', /names rank twice/],
    ['--try', 'rank=two', /which is not a number/],
    ['--try', 'rank=0,4', /rank must be/],
    ['--try', 'solver=qr', /solver in --try is auto, cholesky or cg/],
    ['--try', 'learning-rate=0.1', /ALS has no parameter learning-rate/],
    ['--metric', 'ndgc@20', /ndgc/],
  ])('refuses %s %s', async (flag, value, message) => {
    expectFailure(
      await factorflow('tune', ratings, '--model-dir', path('bad'), flag, value, '--quiet'),
      2,
      message,
    );
  });

  it('refuses flags that exclude each other', async () => {
    await fails(
      2,
      /rank is both a flag and in --try/,
      'tune',
      ratings,
      '--model-dir',
      path('bad'),
      '--try',
      'rank=2',
      '--rank',
      '4',
    );
    await fails(
      2,
      /--validation and --validation-fraction exclude/,
      'tune',
      ratings,
      '--model-dir',
      path('bad'),
      '--validation',
      ratings,
      '--validation-fraction',
      '0.2',
    );
    await fails(
      2,
      /exclude each other/,
      'tune',
      ratings,
      '--model-dir',
      path('bad'),
      '--algorithm',
      'als',
      '--try',
      'algorithm=als,sgd',
    );
    await fails(
      2,
      /--trials acts only with/,
      'tune',
      ratings,
      '--model-dir',
      path('bad'),
      '--try',
      'rank=2,4',
      '--trials',
      '3',
    );
    expect(existsSync(path('bad'))).toBe(false);
  });

  it('tries the defaults first where nothing is named', async () => {
    const { code, stdout } = await factorflow(
      'tune',
      ratings,
      '--model-dir',
      path('usual'),
      '--trials',
      '2',
      '--max-iter',
      '2',
      ...cpu,
      '--json',
      '--quiet',
    );
    expect(code).toBe(0);
    expect((objectOf(stdout) as unknown as { readonly trials: readonly Found[] }).trials[0].params).toEqual({
      rank: 10,
      regParam: 0.02,
      regOffset: 10,
    });
  });

  it('ends the last training where the best trial was best, and says so', async () => {
    const { code, stdout, stderr } = await factorflow(
      'tune',
      ratings,
      '--model-dir',
      path('early'),
      '--implicit',
      '--try',
      'rank=64 alpha=0.01',
      '--max-iter',
      '6',
      '--rank-users',
      '200',
      ...cpu,
    );
    expect(code).toBe(0);
    const [, best, all] = /ndcg@20 0\.\d{4} after (\d) of (\d) iterations/.exec(stderr) ?? [];
    expect([Number(best) < 6, all]).toEqual([true, '6']);
    expect(stdout).toMatch(new RegExp(`│ +${best} of 6 │`));
    const last = `${best} iteration${best === '1' ? '' : 's'}`;
    expect(stderr).toContain(`the last training has ${last}, after which trial 1 was best; it ran 6`);
    expect(stderr).toContain(`train: started, ${last}`);
  });

  it('searches no parameter that a flag sets', async () => {
    const flags = [
      '--implicit',
      '--rank',
      '4',
      '--alpha',
      '7',
      '--trials',
      '2',
      '--max-iter',
      '1',
      '--rank-users',
      '100',
    ];
    const { code, stdout } = await factorflow(
      'tune',
      ratings,
      '--model-dir',
      path('given'),
      ...flags,
      ...cpu,
      '--json',
      '--quiet',
    );
    expect(code).toBe(0);
    expect(
      (objectOf(stdout) as unknown as { readonly trials: readonly Found[] }).trials.map(({ params }) =>
        Object.keys(params),
      ),
    ).toEqual([['regExponent'], ['regExponent']]);
    await fails(
      2,
      /flags set all parameters that tune would search/,
      'tune',
      ratings,
      '--model-dir',
      path('bad'),
      '--implicit',
      '--rank',
      '4',
      '--alpha',
      '7',
      '--reg-exponent',
      '1',
    );
  });
});

describe('the space of a search that names none', () => {
  it.each([
    ['als', {}, ['rank', 'regParam', 'regOffset']],
    ['als', { biases: false }, ['rank', 'regParam']],
    ['sgd', {}, ['rank', 'regParam', 'learningRate']],
    ['als', { implicitPrefs: true }, ['rank', 'alpha', 'regExponent']],
    ['als', { implicitPrefs: true, weight: 'spark' }, ['rank', 'alpha', 'regParam']],
    ['als', { implicitPrefs: true, unobservedWeight: 0.1 }, ['rank', 'regParam']],
  ] as const)('of %s %j has %j', (algorithm, given, names) => {
    expect(Object.keys(usualSpace(algorithm, given))).toEqual(names);
  });

  it('has no α of implicit data far below the default', () => {
    expect(usualSpace('als', { implicitPrefs: true }).alpha).toEqual({ from: 2, to: 200, scale: 'log' });
  });
});
