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
  factorflow,
  fails,
  json,
  quick,
  ratings,
  temporaryFolder,
  trainedModel,
  writeParquet,
} from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

beforeAll(async () => {
  mkdirSync(path('data'));
  copyFileSync(ratings, path('data/a.parquet'));
  symlinkSync(path('data'), path('link'));
  cpSync(await trainedModel(), path('model'), { recursive: true });
});

describe('an output never takes the place of an input, with --force either', () => {
  it.each([
    [
      'predictions over their pairs',
      /the output is an input too/,
      () => ['predict', path('model'), path('data/a.parquet'), '--output', path('data/a.parquet')],
    ],
    [
      'the same by way of a link',
      /the output is an input too/,
      () => ['predict', path('model'), path('link/a.parquet'), '--output', path('data/a.parquet')],
    ],
    [
      'predictions over a folder of pairs',
      /the output is an input too/,
      () => ['predict', path('model'), path('data'), '--output', path('data')],
    ],
    [
      'a file of a pattern',
      /the output is an input too/,
      () => ['predict', path('model'), path('data/*.parquet'), '--output', path('data/a.parquet')],
    ],
    [
      'a new file of a pattern',
      /the output would match the pattern that is read/,
      () => ['convert', path('data/*.parquet'), path('data/b.parquet')],
    ],
    [
      'the same by way of a link',
      /the output would match the pattern that is read/,
      () => ['convert', path('link/*.parquet'), path('data/b.parquet')],
    ],
    [
      'the same from a pattern of links',
      /the output would match the pattern that is read/,
      () => ['convert', path('data/*'), path('link/b.parquet')],
    ],
    [
      'a new folder of a pattern',
      /the output would match the pattern that is read/,
      () => ['predict', path('model'), path('data/*/**'), '--output', path('data/new/below')],
    ],
    [
      'a partition of a pattern',
      /the output would match the pattern that is read/,
      () => ['convert', path('data/*'), path('data/_year=1/b.parquet')],
    ],
    [
      'recommendations over the ratings that are left out',
      /the output is an input too/,
      () => ['recommend', path('model'), '--exclude', path('data'), '--output', path('data')],
    ],
    [
      'recommendations over a folder of a model',
      /would be in a folder that is read/,
      () => ['recommend', path('model'), '--output', path('model/userFactors')],
    ],
    [
      'a folder above an input',
      /would replace a folder that holds an input/,
      () => ['recommend', path('model'), '--exclude', path('data/a.parquet'), '--output', path('data')],
    ],
    [
      'a model below the ratings',
      /would be in a folder that is read/,
      () => ['train', path('data'), '--model-dir', path('data/model')],
    ],
    [
      'a model below the test set',
      /would be in a folder that is read/,
      () => ['train', ratings, '--test', path('data'), '--model-dir', path('data/model')],
    ],
    [
      'a copy of itself',
      /the output is an input too/,
      () => ['convert', path('data/a.parquet'), path('link/a.parquet')],
    ],
  ])('%s', async (_, message, args) => {
    await fails(2, message, ...args(), '--force');
    expect(readFileSync(path('data/a.parquet')).equals(readFileSync(ratings))).toBe(true);
    expect(readdirSync(path('data'))).toEqual(['a.parquet']);
    expect(readdirSync(path('model')).sort()).toEqual([
      'itemCounts',
      'itemFactors',
      'itemMeans',
      'metadata',
      'userFactors',
      'userMeans',
    ]);
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
  const train = (...flags: string[]) => [
    'train',
    ratings,
    '--model-dir',
    path('new/model'),
    ...quick,
    ...flags,
  ];
  it.each([
    [
      'checkpoints in the folder of the model',
      /--model-dir and --checkpoint-dir are the same place/,
      () => train('--checkpoint-dir', path('new/model')),
    ],
    [
      'the same by way of a link',
      /--model-dir and --checkpoint-dir are the same place/,
      () => ['train', ratings, '--model-dir', path('data/new'), '--checkpoint-dir', path('link/new')],
    ],
    [
      'checkpoints below the model',
      /--checkpoint-dir is inside --model-dir/,
      () => train('--checkpoint-dir', path('new/model/checkpoints')),
    ],
    [
      'a model with the name of a checkpoint',
      /--model-dir is inside --checkpoint-dir/,
      () => [
        'train',
        ratings,
        '--model-dir',
        path('new/checkpoint-00000002'),
        '--checkpoint-dir',
        path('new'),
      ],
    ],
    [
      'a report in the folder of the model',
      /--report is inside --model-dir/,
      () => train('--report', path('new/model/z.html')),
    ],
    [
      'a report and a trace of one name',
      /--report and --trace are the same place/,
      () => train('--report', path('new/z.html'), '--trace', path('new/z.html')),
    ],
    [
      'a report among the ratings',
      /--report would be in a folder that is read: .*data/,
      () => ['train', path('data'), '--model-dir', path('new/model'), '--report', path('data/z.html')],
    ],
    [
      'checkpoints among the ratings',
      /--checkpoint-dir would be in a folder that is read: .*data/,
      () => [
        'train',
        path('data'),
        '--model-dir',
        path('new/model'),
        '--checkpoint-dir',
        path('data/checkpoints'),
      ],
    ],
    [
      'checkpoints in place of the test set',
      /--checkpoint-dir is an input too: --test .*data/,
      () => train('--test', path('data'), '--checkpoint-dir', path('data')),
    ],
    [
      'a report in a model that is read',
      /--report would be in a folder that is read: .*model/,
      () => ['evaluate', path('model'), ratings, '--report', path('model/z.html')],
    ],
    [
      'a trace in the folder that convert writes',
      /--trace is inside the output/,
      () => ['convert', ratings, path('new'), '--trace', path('new/t.json')],
    ],
    [
      'the trials of a search in its report',
      /--trials-file and --report are the same place/,
      () => [
        'tune',
        ratings,
        '--model-dir',
        path('new/model'),
        '--trials-file',
        path('new/z.html'),
        '--report',
        path('new/z.html'),
      ],
    ],
  ])('%s', async (_, message, args) => {
    await fails(2, message, ...args());
    expect([existsSync(path('new')), readdirSync(path('data'))]).toEqual([false, ['a.parquet']]);
  });

  it('one folder may hold checkpoints, the model, ratings and a report', async () => {
    mkdirSync(path('run'));
    copyFileSync(ratings, path('run/ratings.parquet'));
    await json(
      'train',
      path('run/ratings.parquet'),
      '--model-dir',
      path('run/model'),
      '--checkpoint-dir',
      path('run'),
      '--report',
      path('run/report.html'),
      '--trace',
      path('run/trace.json'),
      ...quick,
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
  await fails(
    2,
    /the output is a pipe, which is never replaced \(.*pipe\)/,
    'convert',
    ratings,
    path('pipe'),
    '--to',
    'csv',
    '--force',
  );
  await fails(
    2,
    /the output would be inside a model/,
    'convert',
    ratings,
    path('model/itemFactors'),
    '--force',
  );
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
