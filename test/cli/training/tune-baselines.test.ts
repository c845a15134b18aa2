/** Baselines of the command tune: in its table, its JSON and its page. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { expectFailure, factorflow, objectOf, ratings, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const cpu = ['--device', 'cpu', '--workers', '1'];

describe('tune --baselines', () => {
  it('puts baselines in the table, the JSON and the page', async () => {
    const search = [
      'tune',
      ratings,
      '--implicit',
      '--try',
      'rank=2',
      '--max-iter',
      '1',
      '--rank-users',
      '200',
      ...cpu,
      '--quiet',
    ];
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
    const json = await factorflow(
      ...search,
      '--model-dir',
      path('json'),
      '--baselines',
      'item-knn',
      '--metric',
      'mrr',
      '--json',
    );
    expect(objectOf(json.stdout)).toMatchObject({ baselines: { itemKnn: expect.any(Number) as number } });
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
