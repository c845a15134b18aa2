import { execFileSync, spawnSync } from 'node:child_process';
import { symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRegular } from '../../engine/regular-file.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const hasPipes = spawnSync('mkfifo', ['--version']).error === undefined;
if (!hasPipes) console.warn('TESTS OF PIPES ARE SKIPPED: there is no mkfifo');

describe('a small file that is read whole', () => {
  it('has all of its bytes, to the bound', () => {
    writeFileSync(path('five'), 'abcde');
    expect(Buffer.from(readRegular(path('five'), 5)).toString()).toBe('abcde');
    symlinkSync(path('five'), path('link'));
    expect(readRegular(path('link'), 5)).toHaveLength(5);
    writeFileSync(path('none'), '');
    expect(readRegular(path('none'), 0)).toHaveLength(0);
  });

  it('may be one that the kernel makes, which has no size', () => {
    if (process.platform !== 'linux') return;
    const whole = Buffer.from(readRegular('/proc/self/maps', 2 ** 24)).toString();
    expect(whole.endsWith('\n')).toBe(true);
    expect(() => readRegular('/proc/self/maps', 100)).toThrow(/more than 100 B/);
  });

  it('is refused beyond the bound before it is read', () => {
    writeFileSync(path('large'), '');
    truncateSync(path('large'), 2 ** 40);
    expect(() => readRegular(path('large'), 2 ** 20, { phase: 'load' })).toThrow(
      /^load: the file has 1\.0 TiB, more than 1\.0 MiB \(.*large\)/,
    );
  });

  it('is no folder, no device, and no link where links are refused', () => {
    expect(() => readRegular(folder, 10)).toThrow(/this is a folder where a file was expected/);
    for (const device of ['/dev/zero', '/dev/null'])
      expect(() => readRegular(device, 10)).toThrow(
        /this is a device, and a regular file is needed \(\/dev\/\w+\)\. Write its contents into a file/,
      );
    symlinkSync(path('five'), path('other'));
    expect(() => readRegular(path('other'), 10, { links: false })).toThrow(/ELOOP/);
    expect(() => readRegular(path('missing'), 10)).toThrow(/ENOENT/);
  });

  it.skipIf(!hasPipes)('is no pipe, and does not wait for its writer', () => {
    execFileSync('mkfifo', [path('pipe')]);
    expect(() => readRegular(path('pipe'), 10)).toThrow(/this is a pipe, and a regular file is needed/);
  });
});
