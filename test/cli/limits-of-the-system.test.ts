import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { program, quick, ratings, temporariesIn, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();

/** Trains under a limit of the shell. */
function limited(limit: string): Promise<{ readonly code: number; readonly stderr: string }> {
  const args = [process.execPath, program, 'train', ratings, ...quick, '--device', 'cpu', '--workers', '2', '--model-dir', join(folder, 'model'), '--force', '--quiet'];
  return new Promise((resolve) => void execFile('/bin/sh', ['-c', `ulimit ${limit} && exec "$@"`, 'sh', ...args], (error, _stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stderr })));
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

  it('on memory', async () => {
    const { code, stderr } = await limited('-v 2000000');
    expect(stderr).toMatch(/^factorflow: the system gives the CPU device no more memory: .* are needed beside the .* that it has\. Raise the limit/);
    expect(code).toBe(4);
  });
});
