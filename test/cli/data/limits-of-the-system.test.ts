import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { program, quick, ratings, temporariesIn, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();

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
    for (const files of [24, 28, 32]) {
      const { code, stderr } = await limited(`-n ${files}`);
      expect(stderr).toMatch(/^factorflow: too many open files.* Raise the limit \(ulimit -n\)/);
      expect(code).toBe(4);
    }
    expect(await limited('-n 64')).toMatchObject({ code: 0 });
    expect(temporariesIn(folder)).toEqual([]);
  });

  it('on addresses, from those with which the program begins to those that are enough', async () => {
    for (const kibibytes of [2_000_000, 4_000_000, 6_000_000, 7_000_000]) {
      const { code, stderr } = await limited(`-v ${kibibytes}`);
      expect(stderr).toMatch(
        /^factorflow: this process may use .* of address space and uses .*; with 2 threads it takes .*\. Raise the limit \(ulimit -v\), or use fewer workers/,
      );
      expect(code).toBe(4);
    }
    expect(await limited('-v 9000000')).toMatchObject({ code: 0 });
  });
});
