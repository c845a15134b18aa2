/** inspect on the folder of a model. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { expectFailure, factorflow, objectOf, temporaryFolder, trainedModel } from './run-cli.ts';

const folder = temporaryFolder();
let model: string;
beforeAll(async () => {
  model = await trainedModel();
});

/** A copy of the model that a test may change. */
function copied(name: string): string {
  const copy = join(folder, name);
  cpSync(model, copy, { recursive: true });
  return copy;
}

async function inspected(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await factorflow('inspect', ...args, '--json', '--quiet');
  expect([code, stderr]).toEqual([0, '']);
  return objectOf(stdout);
}

describe('inspect MODEL', () => {
  it('describes the model', async () => {
    const { code, stdout, stderr } = await factorflow('inspect', model);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.replace(model, 'MODEL')).toMatch(
      /^MODEL: a model, ALS, rank 4 with biases, \d[\d.]* [KM]iB\n/,
    );
    expect(stdout).toMatch(
      /\n {2}users {7}\d[\d,]*, ids int32\n {2}items {7}\d[\d,]*, ids int32\n {2}ratings {5}100,000\n {2}iterations {2}2\n {2}metrics {5}train RMSE \d\.\d{4}\n {2}parameters {2}rank 4, max-iter 2, [^\n]*reg-param 0\.02[^\n]*\n {2}columns {5}user, item and rating; predictions in prediction\n {2}cold pairs {2}predicted as NaN\n$/,
    );
  });

  it('gives the same as JSON', async () => {
    expect(await inspected(model)).toMatchObject({
      command: 'inspect',
      model,
      algorithm: 'als',
      rank: 4,
      biases: true,
      users: expect.any(Number),
      items: expect.any(Number),
      ratings: 100_000,
      idTypes: { user: 'int32', item: 'int32' },
      params: { rank: 4, maxIter: 2, biases: true },
      iterations: 2,
      bestIteration: 2,
      metrics: { trainRmse: expect.any(Number) },
      warnings: [],
      columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
      coldStartStrategy: 'nan',
      bytes: expect.any(Number),
    });
  });

  it('counts users and items of a model without metadata of its own, as Spark writes them', async () => {
    const copy = copied('spark');
    const path = join(copy, 'metadata', 'part-00000');
    const {
      factorflow: _factorflow,
      checksum: _checksum,
      ...metadata
    } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    writeFileSync(path, `${JSON.stringify(metadata)}\n`);
    const { users, items } = await inspected(model);
    expect(await inspected(copy)).toMatchObject({
      algorithm: null,
      rank: 6,
      biases: false,
      users,
      items,
      ratings: null,
      idTypes: { user: 'int32', item: 'int32' },
      params: {},
      metrics: {},
    });
    const { stdout } = await factorflow('inspect', copy);
    expect(stdout).toMatch(/: a model, factors, rank 6, /);
    expect(stdout).toMatch(/\n {2}trained by {2}another program, such as Spark; /);
  });

  it('names the part that is missing or damaged', async () => {
    const copy = copied('damaged');
    rmSync(join(copy, 'itemFactors'), { recursive: true });
    expectFailure(
      await factorflow('inspect', copy, '--quiet'),
      3,
      /this is not a model: the folder is missing \(.*itemFactors\)/,
    );
    const other = copied('metadata-damaged');
    writeFileSync(join(other, 'metadata', 'part-00000'), '{"class":');
    expectFailure(await factorflow('inspect', other, '--quiet'), 3, /the metadata are not JSON/);
  });

  it('refuses flags and paths of ratings', async () => {
    expectFailure(
      await factorflow('inspect', model, '--user-col', 'u'),
      2,
      /--user-col acts on ratings, and .* is a model\. Leave it out/,
    );
    expectFailure(await factorflow('inspect', model, model), 2, /is a model, which is inspected alone/);
  });
});
