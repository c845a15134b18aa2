import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { argv, factorflow, fewRatings, json, start, temporariesIn, trainedModel } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const ratings = await fewRatings();
const path = (name: string) => join(folder, name);

/**
 * Runs the command that replaces `output`. Kills it after the old output was moved away and before the new
 * one is in its place.
 */
async function killBetweenRenames(output: string, ...args: readonly string[]): Promise<void> {
  const { signal } = await start([...args, '--force', '--quiet'], {
    nodeArgs: ['--import', join(import.meta.dirname, '../../support/faults/die-at-call.mjs')],
    env: { FACTORFLOW_DIE_AT: 'rename:1:after' },
  }).outcome;
  expect(signal).toBe('SIGKILL');
  expect(existsSync(output)).toBe(false);
}

const rowsOf = async (...inputs: readonly string[]) => (await json('inspect', ...inputs)).rows;

let model = '';
beforeAll(async () => {
  model = await trainedModel();
  mkdirSync(path('of'));
});

describe('an output that a killed process had moved aside is there for the next reader', () => {
  it('a converted folder: by name, by pattern, by a link, by a file inside, as the input of a copy', async () => {
    const output = path('of/converted');
    await json('convert', ratings, output);
    symlinkSync(output, path('link'));
    const readers: (() => Promise<unknown>)[] = [
      () => rowsOf(output),
      () => rowsOf(`${output}/*.parquet`),
      () => rowsOf(path('link')),
      () => rowsOf(join(output, 'part-00000.parquet')),
      async () => (await json('convert', output, path('copy.csv'), '--force')).rows,
      async () => (await json('evaluate', model, output)).pairs,
    ];
    await killBetweenRenames(output, 'convert', ratings, output);
    cpSync(path('of'), path('killed'), { recursive: true });
    for (const read of readers) {
      rmSync(path('of'), { recursive: true });
      cpSync(path('killed'), path('of'), { recursive: true });
      expect(await read()).toBe(2000);
      expect(readdirSync(path('of'))).toEqual(['converted']);
    }
  });

  it('recommendations', async () => {
    const output = path('of/recommended');
    const { rows } = await json('recommend', model, '--output', output, '--n', '3');
    await killBetweenRenames(output, 'recommend', model, '--output', output, '--n', '5');
    expect(await rowsOf(output)).toBe(rows);
  });

  it('a generated data set, of which a part is read', async () => {
    const output = path('of/generated');
    const generate = ['generate', '--preset', 'movielens20m', '--scale', '0.001', '--output', output];
    expect((await factorflow(...generate)).code).toBe(0);
    const rows = await rowsOf(join(output, 'train'));
    await killBetweenRenames(output, ...generate, '--seed', '2');
    expect(await rowsOf(join(output, 'train'))).toBe(rows);
  });

  it('a model', async () => {
    const output = path('of/model');
    const train = argv`train ${ratings} --rank 2 --max-iter 1 --device cpu --model-dir ${output}`;
    await json(...train);
    await killBetweenRenames(output, ...train);
    expect(await rowsOf(join(output, 'userFactors'))).toBeGreaterThan(0);
    await killBetweenRenames(output, ...train);
    expect((await json('evaluate', output, ratings)).pairs).toBe(2000);
  });

  it('an output that is its own input is refused still', async () => {
    const output = path('of/own');
    await json('convert', ratings, output);
    await killBetweenRenames(output, 'convert', ratings, output);
    const { code, stderr } = await factorflow('convert', output, join(output, 'below'), '--force');
    expect(stderr).toMatch(/would be in a folder that is read/);
    expect(code).toBe(2);
  });
});

it('what is left of the look whether an output can be written goes with the next run', async () => {
  const parent = path('probed');
  mkdirSync(parent);
  for (const output of [join(parent, 'new/model')]) {
    const train = argv`train ${ratings} --rank 2 --max-iter 1 --device cpu --model-dir ${output}`;
    const { signal } = await start([...train, '--quiet'], {
      nodeArgs: ['--import', join(import.meta.dirname, '../../support/faults/die-at-call.mjs')],
      env: { FACTORFLOW_DIE_AT: 'rmdir:1:before' },
    }).outcome;
    expect(signal).toBe('SIGKILL');
    expect(temporariesIn(parent)).toHaveLength(1);
    await json(...train);
    expect(temporariesIn(parent)).toEqual([]);
  }
});
