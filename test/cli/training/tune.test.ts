/** The command tune: its result, its files, an interruption, and flags without effect. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usualSpace } from '../../../cli/options/training/tune-options.ts';
import { refusals, argv, expectFailure, factorflow, fails, objectOf, ratings, start } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

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
      ...argv`tune ${ratings} --model-dir ${path('model')} --try ${'rank=2,4 reg-param=0.02,0.1'}
      --max-iter 1 ${cpu} --report ${path('page.html')} --json --quiet`,
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
    const { code, stdout, stderr } = await factorflow(
      ...argv`tune ${ratings} --implicit --try rank=2 --max-iter 1 --rank-users 200 ${cpu} --quiet
      --model-dir ${path('implicit')}`,
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /\n {2}test ndcg@10 +0\.\d{4}; popularity 0\.\d{4}\n[^]*\n {2}ranked users +200 of 4,\d{3}, drawn by the seed; --rank-users all ranks all\n/,
    );
    expect(stderr).toMatch(/warning: the best trial ranks no better than popularity.*larger --reg-param/);
  });

  it('prints a table from the best to the worst', async () => {
    const { code, stdout } = await factorflow(
      ...argv`tune ${ratings} --model-dir ${path('table')} --try ${'rank=2 reg-param=0.001..1'}
      --trials 3 --search random --max-iter 1 ${cpu} --quiet`,
    );
    expect(code).toBe(0);
    const found = [...stdout.matchAll(/^│ +\d+ │ +2 │ +([\d.e-]+) │ +([\d.]+) │/gm)].map(([, , value]) =>
      Number(value),
    );
    expect(found).toHaveLength(3);
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
    for (const [args, pattern] of refusals`
      tune ${ratings} --model-dir ${path('bad')} --try rank=2 --rank 4 | rank is both a flag and in --try
      tune ${ratings} --model-dir ${path('bad')} --validation ${ratings} --validation-fraction 0.2 | --validation and --validation-fraction exclude
      tune ${ratings} --model-dir ${path('bad')} --algorithm als --try algorithm=als,sgd | exclude each other
      tune ${ratings} --model-dir ${path('bad')} --try rank=2,4 --trials 3 | --trials acts only with
    `)
      await fails(2, pattern, ...args);
    expect(existsSync(path('bad'))).toBe(false);
  });

  it('tries the defaults first where nothing is named', async () => {
    const { code, stdout } = await factorflow(
      ...argv`tune ${ratings} --model-dir ${path('usual')} --trials 1 --max-iter 1 ${cpu} --json
      --quiet`,
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
      ...argv`tune ${ratings} --model-dir ${path('early')} --implicit --try ${'rank=64 alpha=0.01'}
      --max-iter 6 --rank-users 200 ${cpu}`,
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
    const flags = argv`--implicit --rank 4 --alpha 7 --trials 2 --max-iter 1 --rank-users 100`;
    const { code, stdout } = await factorflow(
      ...argv`tune ${ratings} --model-dir ${path('given')} ${flags} ${cpu} --json --quiet`,
    );
    expect(code).toBe(0);
    const found = objectOf(stdout) as unknown as { readonly trials: readonly Found[] };
    expect(found).toMatchObject({
      ranking: { users: 100, metrics: { 'ndcg@10': expect.any(Number) } },
      warnings: expect.arrayContaining([expect.objectContaining({ code: 'no-better-than-popularity' })]),
    });
    expect(found.trials.map(({ params }) => Object.keys(params))).toEqual([['regExponent'], ['regExponent']]);
    await fails(
      2,
      /flags set all parameters that tune would search/,
      ...argv`tune ${ratings} --model-dir ${path('bad')} --implicit --rank 4 --alpha 7 --reg-exponent
      1`,
    );
  });
});

describe('the space of a search that names none', () => {
  it.each([
    ['als', {}, ['rank', 'regParam', 'regOffset']],
    ['als', { biases: false }, ['rank', 'regParam']],
    ['sgd', {}, ['rank', 'regParam', 'learningRate']],
    ['als', { implicitPrefs: true }, ['rank', 'alpha', 'regExponent']],
    ['als', { implicitPrefs: true, timestampCol: 'ts' }, ['rank', 'alpha', 'regExponent', 'halfLife']],
    ['als', { timestampCol: 'ts' }, ['rank', 'regParam', 'regOffset']],
    ['als', { implicitPrefs: true, weight: 'spark' }, ['rank', 'alpha', 'regParam']],
    ['als', { implicitPrefs: true, unobservedWeight: 0.1 }, ['rank', 'regParam']],
  ] as const)('of %s %j has %j', (algorithm, given, names) => {
    expect(Object.keys(usualSpace(algorithm, given))).toEqual(names);
  });

  it('has no α of implicit data far below the default', () => {
    expect(usualSpace('als', { implicitPrefs: true }).alpha).toEqual({ from: 2, to: 200, scale: 'log' });
  });
});

describe('the trials of tune', () => {
  it('goes on after Ctrl-C with the same table', async () => {
    const search = (
      model: string,
      ...more: readonly string[]
    ) => argv`tune ${ratings} --model-dir ${path(model)} --try ${'rank=2,4,6,8 max-iter=6'} ${cpu}
      ${more}`;
    const { child, outcome, stderrMatches } = start(search('cut'));
    await stderrMatches(/trial 1 of 4, rank 2.*rmse/);
    child.kill('SIGINT');
    const cut = await outcome;
    expect(cut.code).toBe(130);
    expect(cut.stderr).toContain('--resume continues');
    const lines = readFileSync(path('cut.trials.ndjson'), 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(1);
    expect(existsSync(path('cut'))).toBe(false);
    for (const [args, pattern] of refusals`
      ${search('cut')} | has the trials of an earlier search
      ${search('cut', '--resume', '--seed', '1')} | trials of another search: seed
    `)
      await fails(2, pattern, ...args);
    // A line that a kill cut off is left out.
    writeFileSync(path('cut.trials.ndjson'), `${lines.join('\n')}\n{"number":`);
    const [resumed, whole] = [
      await factorflow(...search('cut', '--resume', '--json', '--quiet')),
      await factorflow(...search('whole', '--json', '--quiet')),
    ];
    expect([resumed.code, whole.code]).toEqual([0, 0]);
    const values = (stdout: string) =>
      (objectOf(stdout) as unknown as { readonly trials: readonly Found[] }).trials.map(
        ({ params, value }) => [params, value],
      );
    expect(values(resumed.stdout)).toEqual(values(whole.stdout));
    expect(existsSync(path('cut.trials.ndjson'))).toBe(false);
  });

  it('tells where the trials are when the model cannot be saved, and goes on', async () => {
    const search = (
      ...more: readonly string[]
    ) => argv`tune ${ratings} --model-dir ${path('taken')} --try ${'rank=2,4,6,8 max-iter=6'} ${cpu}
      ${more}`;
    const { outcome, stderrMatches } = start(search());
    await stderrMatches(/trial 1 of 4, rank 2.*rmse/);
    writeFileSync(path('taken'), 'a file of somebody else');
    const failed = await outcome;
    expect(failed.code).not.toBe(0);
    expect(failed.stderr).toMatch(
      /the trials that have ended are in \S*taken\.trials\.ndjson; the same command with --resume continues/,
    );
    rmSync(path('taken'));
    const resumed = await factorflow(...search('--resume'));
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).toContain('4 trials of');
    expect(existsSync(path('taken.trials.ndjson'))).toBe(false);
  });

  it('replaces no file that has no trials, and no output by another', async () => {
    const search = (...more: readonly string[]) =>
      argv`tune ${ratings} --model-dir ${path('guard')} --try rank=2 --max-iter 1 ${more}`;
    writeFileSync(path('notes.txt'), 'notes');
    await fails(
      2,
      /is not a file of trials, and is not replaced/,
      ...search('--trials-file', path('notes.txt'), '--force'),
    );
    expect(readFileSync(path('notes.txt'), 'utf8')).toBe('notes');
    for (const [args, pattern] of refusals`
      ${search('--trials-file', ratings, '--force')} | --trials-file is an input too
      ${search('--trials-file', path('guard'))} | --model-dir and --trials-file are the same place|--trials-file and --model-dir are the same place
      ${search('--trials-file', path('x.html'), '--report', path('x.html'))} | --trials-file and --report are the same place|--report and --trials-file are the same place
      ${search('--trials-file', '/dev/null')} | this is a device, and a regular file is needed
    `)
      await fails(2, pattern, ...args);
    expect(existsSync(path('guard'))).toBe(false);
  });

  it('goes on after two interruptions, and with no other columns or ratings', async () => {
    const source = path('columns.csv');
    writeFileSync(
      source,
      `user,item,rating\n${Array.from({ length: 400 }, (_, k) => `${k % 20},${(3 * k) % 17},${1 + (k % 5)}`).join('\n')}\n`,
    );
    const file = path('glued.ndjson');
    const search = (
      model: string,
      ...more: readonly string[]
    ) => argv`tune ${source} --model-dir ${path(model)} --try rank=2,3,4 --max-iter 2 ${cpu} --quiet
      --trials-file ${file} ${more}`;
    expect((await factorflow(...search('glued-1'))).code).toBe(0);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    writeFileSync(file, `${lines.slice(0, 3).join('\n')}\n{"number":3,"params`);
    expect((await factorflow(...search('glued-2', '--resume'))).code).toBe(0);
    expect((await factorflow(...search('glued-3', '--resume'))).code).toBe(0);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(4);
    await fails(
      2,
      /trials of another search: params/,
      ...search('glued-4', '--resume', '--on-duplicates', 'sum').filter((word) => word !== '--quiet'),
    );
    writeFileSync(
      source,
      `user,item,rating\n${Array.from({ length: 500 }, (_, k) => `${k % 20},${(3 * k) % 17},${1 + (k % 5)}`).join('\n')}\n`,
    );
    await fails(
      2,
      /trials of another search: ratings/,
      ...search('glued-5', '--resume').filter((word) => word !== '--quiet'),
    );
  });
});

describe('tune --baselines', () => {
  it('puts baselines in the table and the page', async () => {
    const search = argv`tune ${ratings} --implicit --try rank=2 --max-iter 1 --rank-users 200 ${cpu} --quiet`;
    const two = ['--baselines', 'popularity,item-knn'];
    const page = ['--report', path('lines.html')];
    const { code, stdout } = await factorflow(...search, '--model-dir', path('lines'), ...two, ...page);
    expect(code).toBe(0);
    const [popularity, knn] = ['popularity', 'item-kNN'].map(
      (title) => new RegExp(`│ +│ +│ +(0\\.\\d{4}) │ +│ +│ baseline: ${title} +│`).exec(stdout)?.[1],
    );
    expect(stdout).toContain(`on the validation ratings (popularity ${popularity}, item-kNN ${knn})`);
    expect(readFileSync(path('lines.html'), 'utf8')).toMatch(
      new RegExp(`${popularity}[^]*baseline: popularity[^]*${knn}[^]*baseline: item-kNN`),
    );
  });

  it('compares errors with means, and refuses baselines that rank', async () => {
    const search = ['tune', ratings, '--try', 'rank=2', '--max-iter', '2', ...cpu, '--quiet'];
    const { stdout } = await factorflow(...search, '--model-dir', path('means'));
    const [, mean] = /│ +(\d\.\d{4}) │ +│ +│ baseline: the mean +│/.exec(stdout) ?? [];
    const [, damped] = /│ +(\d\.\d{4}) │ +│ +│ baseline: damped means +│/.exec(stdout) ?? [];
    expect(stdout).toContain(`on the validation ratings (the mean ${mean}, damped means ${damped})`);
    for (const given of ['ease', 'none'])
      expectFailure(
        await factorflow(...search, '--model-dir', path('bad'), '--baselines', given),
        2,
        /--baselines acts only with a ranking metric/,
      );
    expectFailure(
      await factorflow(...search, '--model-dir', path('bad'), '--metric', 'ndcg@5', '--baselines', 'knn'),
      2,
      /--baselines/,
    );
  });
});
