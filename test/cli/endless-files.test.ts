/**
 * Small files that commands read whole, replaced by pipes without a writer, devices without an end, and
 * files beyond any real size: each is an error at once.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factorflow, quick, ratings, trainedModel } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const missing =
  process.platform === 'win32' || spawnSync('mkfifo', ['--version']).error !== undefined
    ? 'there are no pipes with names'
    : undefined;
if (missing !== undefined) console.warn(`TESTS OF PIPES AND DEVICES ARE SKIPPED: ${missing}`);

const kinds: Readonly<Record<string, (file: string) => void>> = {
  pipe: (file) => void execFileSync('mkfifo', [file]),
  device: (file) => symlinkSync('/dev/zero', file),
  large: (file) => {
    writeFileSync(file, '');
    truncateSync(file, 2 ** 40);
  },
  folder: (file) => void mkdirSync(file),
};
const problems: Readonly<Record<string, RegExp>> = {
  pipe: /this is a pipe, and a regular file is needed/,
  device: /this is a device, and a regular file is needed/,
  large: /the file has 1\.0 TiB, more than/,
  folder: /this is a folder where a file was expected/,
};

async function refused(code: number, pattern: RegExp, ...args: readonly string[]): Promise<void> {
  const ended = await factorflow(...args, '--quiet');
  expect(ended).toMatchObject({ code, stdout: '' });
  expect(ended.stderr).toMatch(pattern);
  expect(ended.stderr).not.toMatch(/internal error/);
}

describe.skipIf(missing !== undefined).each(Object.keys(kinds))('a %s', (kind) => {
  const make = (file: string) => {
    rmSync(file, { recursive: true, force: true });
    kinds[kind](file);
    return file;
  };
  const train = ['train', ratings, ...quick, '--model-dir', path(`${kind}-none`)];

  it('as the configuration, the plan and the file of trials', async () => {
    await refused(2, problems[kind], ...train, '--config', make(path(`${kind}.json`)));
    await refused(2, problems[kind], ...train, '--plan', make(path(`${kind}.plan`)));
    const trials = ['--trials', '1', '--trials-file', make(path(`${kind}.ndjson`))];
    await refused(2, problems[kind], 'tune', ratings, '--model-dir', path(`${kind}-none`), ...trials);
  });

  it('as the metadata of a model', async () => {
    const model = path(`${kind}-model`);
    cpSync(await trainedModel(), model, { recursive: true });
    make(join(model, 'metadata/part-00000'));
    await refused(3, problems[kind], 'recommend', model, '--users', '1');
  });

  it('as the lock of checkpoints', async () => {
    const checkpoints = path(`${kind}-checkpoints`);
    mkdirSync(checkpoints);
    make(join(checkpoints, 'lock'));
    await refused(2, /the lock of the folder cannot be read/, ...train, '--checkpoint-dir', checkpoints);
  });

  it('as an earlier report or trace', async () => {
    const pattern = /write: (the output is a \w+, which is never replaced|.* exists)/;
    await refused(2, pattern, ...train, '--report', make(path(`${kind}.html`)));
    await refused(2, pattern, ...train, '--trace', make(path(`${kind}.trace`)));
  });
});
