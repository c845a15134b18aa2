import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fails, json, ratings, temporariesIn, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

describe('the output and the flags of split', () => {
  it('replaces an earlier split with --force alone, and leaves nothing of one that fails', async () => {
    const flags = ['split', ratings, '--output', path('kept')];
    await json(...flags, '--folds', '2');
    await fails(2, /the output exists already .*--force/, ...flags, '--test-fraction', '0.5');
    await json(...flags, '--test-fraction', '0.5', '--force');
    expect(readdirSync(path('kept')).sort()).toEqual(['test', 'train']);
    writeFileSync(path('kept/notes.md'), 'mine');
    await fails(
      2,
      /it holds "notes.md", which does not belong to this kind of output/,
      ...flags,
      '--folds',
      '2',
      '--force',
    );
    const broken = path('broken.csv');
    writeFileSync(broken, `user,item,rating\n${'1,2,3\n'.repeat(500_000)}1,2,x\n`);
    await fails(
      3,
      /broken\.csv/,
      'split',
      broken,
      '--output',
      path('none'),
      '--folds',
      '2',
      '--types',
      'rating=float32',
    );
    expect(existsSync(path('none'))).toBe(false);
    expect(temporariesIn(folder)).toEqual([]);
  });

  it('refuses flags that name no split, two, or none that acts', async () => {
    const refused = (pattern: RegExp, ...flags: readonly string[]) =>
      fails(2, pattern, 'split', ratings, '--output', path('refused'), ...flags);
    await refused(
      /split needs a kind of split\. Give one of --test-fraction, --test-leave-out, --folds, --before/,
    );
    await refused(/--test-fraction and --folds exclude each other/, '--test-fraction', '0.1', '--folds', '3');
    await refused(
      /--validation-fraction acts only with --test-fraction/,
      '--folds',
      '3',
      '--validation-fraction',
      '0.1',
    );
    await refused(/leave nothing to train on/, '--test-fraction', '0.5', '--validation-fraction', '0.5');
    await refused(
      /--test-by acts only with --test-fraction or --test-leave-out/,
      '--folds',
      '3',
      '--test-by',
      'time',
    );
    await refused(
      /--seed acts only on a split at random/,
      '--test-fraction',
      '0.1',
      '--test-by',
      'time',
      '--seed',
      '1',
    );
    await refused(
      /--timestamp-col acts only with --test-by time or --before/,
      '--folds',
      '3',
      '--timestamp-col',
      'timestamp',
    );
    for (const wrong of ['soon', 'item 5', '2024-02-30', 'June 1 2024'])
      await refused(
        new RegExp(`--before must be a number or a date such as 2024-06-01, got "${wrong}"`),
        '--before',
        wrong,
      );
    await fails(2, /--output is needed/, 'split', ratings, '--folds', '3');
    await fails(2, /stdin can be read only once/, 'split', '-', '--output', path('refused'), '--folds', '3');
    await json('split', ratings, '--output', path('random'), '--test-fraction', '0.1');
    await fails(
      2,
      /the output would replace a folder that holds an input|is an input too|would be in a folder that is read/,
      'split',
      path('random/train'),
      '--output',
      path('random'),
      '--folds',
      '3',
      '--force',
    );
    await fails(
      2,
      /--test-output acts only with --test-fraction or --test-leave-out/,
      'train',
      ratings,
      '--model-dir',
      path('refused'),
      '--test',
      ratings,
      '--test-output',
      path('x.csv'),
    );
    expect(existsSync(path('refused'))).toBe(false);
  });
});
