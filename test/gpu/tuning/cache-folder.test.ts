/** A cache is kept and read only where no other user could have put a file. */
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeOwnFolder, requireOwnFolder } from '../../../gpu/probe/cache-folder.ts';
import { TunerCache } from '../../../gpu/update/choice/tuner-cache.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
let made = 0;

function folder(mode = 0o700): string {
  const path = join(root, `${made++}`);
  mkdirSync(path);
  chmodSync(path, mode);
  return path;
}

describe.skipIf(process.getuid === undefined)('a cache folder', () => {
  it("that is the user's own is used", () => {
    const path = join(folder(), 'a', 'b');
    makeOwnFolder(path);
    expect(() => requireOwnFolder(path)).not.toThrow();
  });

  it.each([0o777, 0o770, 0o702, 0o1777])('with mode %o is not used', (mode) => {
    const path = folder(mode);
    expect(() => makeOwnFolder(path)).toThrow(/can be written to by other users/);
  });

  it('below a folder that others may write to is used where that one is sticky', () => {
    expect(() => makeOwnFolder(join(folder(0o777), 'a'))).toThrow(/can be written to by other users/);
    expect(() => makeOwnFolder(join(folder(0o1777), 'a'))).not.toThrow();
  });

  it('that is a symbolic link is not used', () => {
    const link = join(root, 'link');
    symlinkSync(folder(), link);
    expect(() => makeOwnFolder(link)).toThrow(/symbolic link/);
  });

  it.skipIf(process.getuid?.() !== 0)('of another user is not used (needs root)', () => {
    const path = folder();
    chownSync(path, 12_345, 12_345);
    expect(() => makeOwnFolder(path)).toThrow(/belongs to user 12345, and this is user 0/);
    expect(() => makeOwnFolder(join(path, 'a'))).toThrow(/belongs to user 12345/);
  });

  it('of measured kernels is not read once others may write to it', async () => {
    const path = folder();
    const tuned = { variant: 'tiled8-f32', reason: 'measured' } as const;
    const cache = new TunerCache(path);
    expect(await cache.keep('a', tuned as never)).toBeUndefined();
    expect(await cache.find('a')).toEqual(tuned);
    chmodSync(path, 0o777);
    expect(await cache.find('a')).toBeUndefined();
    expect(await cache.keep('a', tuned as never)).toMatch(/can be written to by other users/);
  });

  it('of compiled code is used by a process only where no other user may write to it', () => {
    const keep = JSON.stringify(join(import.meta.dirname, '../../../api/keep-compiled.ts'));
    const script = `(await import(${keep})).keepCompiled(); console.log(process.env.NODE_COMPILE_CACHE ?? 'none')`;
    const usedBelow = (path: string) => {
      const env = { ...process.env, FACTORFLOW_CACHE_DIR: path, NODE_COMPILE_CACHE: undefined };
      const args = ['--no-warnings', '--input-type=module', '-e', script];
      return execFileSync(process.execPath, args, { env, encoding: 'utf8' }).trim();
    };
    const own = folder();
    expect(usedBelow(own)).toBe(join(own, 'compiled'));
    expect(usedBelow(folder(0o777))).toBe('none');
  });
});
