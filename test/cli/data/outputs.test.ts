import { chmodSync, existsSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withTmpfs } from '../../support/tmpfs.ts';
import {
  modelFiles,
  argv,
  expectFailure,
  factorflow,
  fails,
  objectOf,
  quick,
  ratings,
  start,
  temporariesIn,
  program,
} from '../run-cli.ts';
import type { Started } from '../../support/start-process.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { execFile } from 'node:child_process';

const folder = temporaryFolder();
const generate = (output: string) => argv`generate --preset movielens20m --scale 0.02 --output ${output}`;

describe('outputs that cannot be written fail before the work', () => {
  it('a file in place of a folder', async () => {
    writeFileSync(join(folder, 'file'), '');
    for (const command of [
      ['train', ratings, ...quick, '--model-dir'],
      ['predict', 'model', 'pairs', '--output'],
      generate('').slice(0, -1),
    ]) {
      await fails(
        3,
        /file is a file, not a folder .*Choose another output/,
        ...command,
        join(folder, 'file', 'below'),
      );
    }
    await fails(
      2,
      /the output exists and is a file, not a folder/,
      ...argv`train ${ratings} --model-dir ${join(folder, 'file')}`,
    );
  });

  it('a folder without permission to write', async ({ skip }) => {
    if (process.getuid?.() === 0) return skip('root writes into read-only folders anyway');
    const path = join(folder, 'read-only');
    mkdirSync(path);
    chmodSync(path, 0o555);
    await fails(
      3,
      /permission denied .*Choose another output/,
      ...argv`train ${ratings} --model-dir ${join(path, 'model')}`,
    );
    chmodSync(path, 0o755);
  });

  it('a read-only file system', async ({ skip }) => {
    await withTmpfs(skip, join(folder, 'ro'), 'ro,size=64k', (path) =>
      fails(3, /read-only .*Choose another output/, 'train', ratings, '--model-dir', join(path, 'model')),
    );
  });

  it('a parent folder that is missing is made, and goes again when the run fails', async () => {
    await fails(
      3,
      /no such file/,
      ...argv`train ${join(folder, 'missing.parquet')} --model-dir ${join(folder, 'new/parent/model')}`,
    );
    expect(existsSync(join(folder, 'new'))).toBe(false);
  });
});

describe('a full disk', () => {
  it('exits with 4 and leaves nothing', async ({ skip }) => {
    await withTmpfs(skip, join(folder, 'full'), 'size=256k', async (path) => {
      expectFailure(
        await factorflow(...generate(join(path, 'data')), '--quiet'),
        4,
        /the disk is full: the output needs more than .* are free \(.*full\/data\)/,
      );
      expect(readdirSync(path)).toEqual([]);
      expectFailure(
        await factorflow(
          ...argv`train ${ratings} --rank 64 --max-iter 1 --model-dir ${join(path, 'model')} --quiet`,
        ),
        4,
        /the disk is full: the output needs \d.* are free \(.*full\/model\)/,
      );
      expect(readdirSync(path)).toEqual([]);
    });
  });

  it('behind stdout exits with 4', async ({ skip }) => {
    if (!existsSync('/dev/full')) return skip('there is no /dev/full');
    for (const args of [
      ['doctor', '--json'],
      ['--version'],
      ['convert', ratings, '-', '--to', 'csv', '--quiet'],
    ]) {
      const { code, stderr } = await start(args, { stdout: openSync('/dev/full', 'w') }).outcome;
      expect(stderr).toMatch(/^factorflow: write: the disk is full \(stdout\).* is incomplete\n$/);
      expect(code).toBe(4);
    }
  });

  it.skipIf(process.platform === 'win32')('that fills in the middle of a write exits with 4', async () => {
    for (const [args, blocks] of [
      [['convert', ratings, '-', '--to', 'csv', '--quiet'], 128],
      [['convert', ratings, '-', '--to', 'arrow', '--quiet'], 128],
      [['train', '--help'], 1],
    ] as const) {
      const within = ['sh', '-c', `ulimit -f ${blocks}; exec "$@"`, 'sh'];
      const stdout = openSync(join(folder, 'cut'), 'w');
      const run = start(args, { stdout, within });
      expect(await run.outcome).toMatchObject({
        code: 4,
        stderr: expect.stringMatching(/largest size .*\(stdout\).* is incomplete\n$/) as string,
      });
    }
  });
});

describe('a reader that goes away', () => {
  it('is no error', async () => {
    const { child, outcome } = start(['inspect', ratings, '--quiet']);
    child.stdout?.destroy();
    expect(await outcome).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('cancellation', () => {
  it('in the middle of training exits with 130, without a model', async () => {
    const parent = join(folder, 'cancelled');
    mkdirSync(parent);
    const model = join(parent, 'model');
    const { child, outcome, stderrMatches } = start(
      argv`train ${ratings} --rank 32 --max-iter 100000 --model-dir ${model} --json`,
    );
    await stderrMatches(/iteration 2\//);
    child.kill('SIGINT');
    const { code, stdout, stderr } = await outcome;
    expect(stderr).toMatch(/cancelled\n$/);
    expect(stderr).not.toContain('    at ');
    expect(code).toBe(130);
    expect(objectOf(stdout)).toMatchObject({ command: 'train', error: { exitCode: 130 } });
    expect(readdirSync(parent)).toEqual([]);
  });

  it('in the middle of writing removes what is unfinished', async () => {
    const parent = join(folder, 'writing');
    mkdirSync(parent);
    const run = start(['generate', '--preset', 'movielens20m', '--output', join(parent, 'data')]);
    await temporaryAppears(parent, run);
    run.child.kill('SIGINT');
    expect(await run.outcome).toMatchObject({ code: 130 });
    expect(readdirSync(parent)).toEqual([]);
  });
});

describe('a process that is killed', () => {
  it('leaves a temporary at most, and the next run clears it and succeeds', async () => {
    const parent = join(folder, 'killed');
    mkdirSync(parent);
    const data = join(parent, 'data');
    const killed = start(['generate', '--preset', 'movielens20m', '--output', data]);
    await temporaryAppears(parent, killed);
    killed.child.kill('SIGKILL');
    expect(await killed.outcome).toMatchObject({ signal: 'SIGKILL' });
    expect(existsSync(data)).toBe(false);
    expect(temporariesIn(parent)).toHaveLength(1);
    const next = await factorflow(...argv`generate --preset movielens20m --scale 0.001 --output ${data}`);
    expect(next.code).toBe(0);
    expect(readdirSync(parent)).toEqual(['data']);
  });

  it('while it saves a model leaves the whole model or none', async () => {
    const parent = join(folder, 'killed-model');
    mkdirSync(parent);
    const model = join(parent, 'model');
    const killed = start(['train', ratings, '--rank', '128', '--max-iter', '1', '--model-dir', model]);
    await temporaryAppears(parent, killed);
    killed.child.kill('SIGKILL');
    await killed.outcome;
    const isWhole = existsSync(model);
    if (isWhole) expect(readdirSync(model).sort()).toEqual(modelFiles);
    const next = await factorflow('train', ratings, ...quick, '--model-dir', model, '--force');
    expect(next.code).toBe(0);
    expect(readdirSync(parent)).toEqual(['model']);
  });
});

/**
 * Resolves once there is an unfinished output folder with something in it, or the run has ended. An empty one
 * may be the look whether the output can be written, which goes again.
 */
async function temporaryAppears(parent: string, { child }: Started): Promise<void> {
  while (child.exitCode === null && !temporariesIn(parent).some((name) => isFilled(join(parent, name))))
    await new Promise((done) => setTimeout(done, 5));
}

function isFilled(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}

describe('limits of the system', () => {
  /** Trains under a limit of the shell. */
  function limited(limit: string): Promise<{ readonly code: number; readonly stderr: string }> {
    const args = [
      process.execPath,
      program,
      'train',
      ratings,
      ...quick,
      '--device',
      'cpu',
      '--workers',
      '2',
      '--model-dir',
      join(folder, 'model'),
      '--force',
      '--quiet',
    ];
    return new Promise(
      (resolve) =>
        void execFile(
          '/bin/sh',
          ['-c', `ulimit ${limit} && exec "$@"`, 'sh', ...args],
          (error, _stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stderr }),
        ),
    );
  }

  describe.runIf(process.platform === 'linux')('a limit of the system is named', () => {
    it('on open files, from those with which threads cannot begin to those that are enough', async () => {
      for (const files of [24, 32]) {
        const { code, stderr } = await limited(`-n ${files}`);
        expect(stderr).toMatch(/^factorflow: too many open files.* Raise the limit \(ulimit -n\)/);
        expect(code).toBe(4);
      }
      expect(await limited('-n 64')).toMatchObject({ code: 0 });
      expect(temporariesIn(folder)).toEqual([]);
    });

    it('on addresses, from those with which the program begins to those that are enough', async () => {
      for (const kibibytes of [2_000_000, 7_000_000]) {
        const { code, stderr } = await limited(`-v ${kibibytes}`);
        expect(stderr).toMatch(
          /^factorflow: this process may use .* of address space and uses .*; with 2 threads it takes .*\. Raise the limit \(ulimit -v\), or use fewer workers/,
        );
        expect(code).toBe(4);
      }
      expect(await limited('-v 9000000')).toMatchObject({ code: 0 });
    });
  });
});
