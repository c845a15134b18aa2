import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  refusals,
  argv,
  factorflow,
  fewRatings,
  fails,
  json,
  modelFiles,
  quick,
  ratings,
  trainedModel,
  writeParquet,
} from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

beforeAll(async () => {
  mkdirSync(path('data'));
  copyFileSync(await fewRatings(), path('data/a.parquet'));
  symlinkSync(path('data'), path('link'));
  cpSync(await trainedModel(), path('model'), { recursive: true });
});

describe('an output never takes the place of an input, with --force either', () => {
  it('over it, in a folder or a pattern that is read, above it, and by way of a link', async () => {
    const [data, a, link] = ['data', 'data/a.parquet', 'link'].map(path);
    for (const [args, pattern] of refusals`
      predict ${path('model')} ${a} --output ${a} | the output is an input too
      predict ${path('model')} ${link}/a.parquet --output ${a} | the output is an input too
      predict ${path('model')} ${data} --output ${data} | the output is an input too
      predict ${path('model')} ${data}/*.parquet --output ${a} | the output is an input too
      convert ${a} ${link}/a.parquet | the output is an input too
      recommend ${path('model')} --exclude ${data} --output ${data} | the output is an input too
      convert ${data}/*.parquet ${data}/b.parquet | the output would match the pattern that is read
      convert ${link}/*.parquet ${data}/b.parquet | the output would match the pattern that is read
      convert ${data}/* ${link}/b.parquet | the output would match the pattern that is read
      predict ${path('model')} ${data}/*/** --output ${data}/new/below | the output would match the pattern that is read
      convert ${data}/* ${data}/_year=1/b.parquet | the output would match the pattern that is read
      recommend ${path('model')} --output ${path('model/userFactors')} | would be in a folder that is read
      train ${data} --model-dir ${data}/model | would be in a folder that is read
      train ${ratings} --test ${data} --model-dir ${data}/model | would be in a folder that is read
      recommend ${path('model')} --exclude ${a} --output ${data} | would replace a folder that holds an input
    `) {
      await fails(2, pattern, ...args, '--force');
      expect(readFileSync(a).equals(readFileSync(await fewRatings()))).toBe(true);
      expect(readdirSync(data)).toEqual(['a.parquet']);
      expect(readdirSync(path('model')).sort()).toEqual(modelFiles);
    }
  });

  it('an input that does not exist is reported as missing', async () => {
    for (const [nothing, message, code] of [
      [path('nothing'), /no such file or folder/, 3],
      ['', /a path is a text that is not empty, got ""/, 2],
    ] as const)
      await fails(code, message, 'train', nothing, '--model-dir', path('new-model'));
  });

  it('a name that readers pass over is free, and so is a neighbour', async () => {
    cpSync(path('data'), path('mine'), { recursive: true });
    await json('train', path('mine'), '--model-dir', path('mine/_model'), ...quick);
    await json('train', path('mine'), '--model-dir', path('mine-model'), ...quick);
    await json('convert', path('mine/*.parquet'), path('mine/b.csv'));
    await json('convert', path('mine/*.parquet'), path('mine/_b.parquet'));
  });
});

describe('outputs that would take the place of one another are refused before the work', () => {
  it('in one place, or one inside another or an input', async () => {
    const train = argv`train ${ratings} --model-dir ${path('new/model')} ${quick}`;
    for (const [args, pattern] of refusals`
      ${train} --checkpoint-dir ${path('new/model')} | --model-dir and --checkpoint-dir are the same place
      train ${ratings} --model-dir ${path('data/new')} --checkpoint-dir ${path('link/new')} | --model-dir and --checkpoint-dir are the same place
      ${train} --checkpoint-dir ${path('new/model/checkpoints')} | --checkpoint-dir is inside --model-dir
      train ${ratings} --model-dir ${path('new/checkpoint-00000002')} --checkpoint-dir ${path('new')} | --model-dir is inside --checkpoint-dir
      ${train} --report ${path('new/model/z.html')} | --report is inside --model-dir
      ${train} --report ${path('new/z.html')} --trace ${path('new/z.html')} | --report and --trace are the same place
      train ${path('data')} --model-dir ${path('new/model')} --report ${path('data/z.html')} | --report would be in a folder that is read: .*data
      train ${path('data')} --model-dir ${path('new/model')} --checkpoint-dir ${path('data/checkpoints')} | --checkpoint-dir would be in a folder that is read: .*data
      ${train} --test ${path('data')} --checkpoint-dir ${path('data')} | --checkpoint-dir is an input too: --test .*data
      evaluate ${path('model')} ${ratings} --report ${path('model/z.html')} | --report would be in a folder that is read: .*model
      convert ${ratings} ${path('new')} --trace ${path('new/t.json')} | --trace is inside the output
      tune ${ratings} --model-dir ${path('new/model')} --trials-file ${path('new/z.html')} --report ${path('new/z.html')} | --trials-file and --report are the same place
    `) {
      await fails(2, pattern, ...args);
      expect([existsSync(path('new')), readdirSync(path('data'))]).toEqual([false, ['a.parquet']]);
    }
  });

  it('one folder may hold checkpoints, the model, ratings and a report', async () => {
    mkdirSync(path('run'));
    copyFileSync(await fewRatings(), path('run/ratings.parquet'));
    await json(
      ...argv`train ${path('run/ratings.parquet')} --model-dir ${path('run/model')} --checkpoint-dir
      ${path('run')} --report ${path('run/report.html')} --trace ${path('run/trace.json')}
      ${quick}`,
    );
    expect(readdirSync(path('run')).sort()).toEqual([
      'checkpoint-00000002',
      'model',
      'ratings.parquet',
      'report.html',
      'trace.json',
    ]);
  });
});

it('pipes and parts of models are left as they are', async () => {
  execFileSync('mkfifo', [path('pipe')]);
  for (const [args, pattern] of refusals`
    convert ${ratings} ${path('pipe')} --to csv --force | the output is a pipe, which is never replaced \(.*pipe\)
    convert ${ratings} ${path('model/itemFactors')} --force | the output would be inside a model
  `)
    await fails(2, pattern, ...args);
  expect(statSync(path('pipe')).isFIFO()).toBe(true);
});

it('inspect names no codecs where there are no rows', async () => {
  const empty = await writeParquet(
    path('empty.parquet'),
    'SELECT 1::INT AS user, 1::INT AS item, 1::FLOAT AS rating WHERE false',
  );
  const { code, stdout } = await factorflow('inspect', empty);
  expect(code).toBe(0);
  expect(stdout).not.toContain("folder's name");
});
