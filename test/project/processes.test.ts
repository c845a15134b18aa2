/**
 * Test files that share a process import no helper that registers hooks as it loads: see
 * test/support/processes.ts.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { filesOf, ownProcess, sharedProcess } from '../support/processes.ts';

const root = resolve(import.meta.dirname, '../..');

/** The helpers among a file's imports, and theirs. */
function helpersOf(file: string, found = new Set<string>()): Set<string> {
  for (const [, path] of readFileSync(join(root, file), 'utf8').matchAll(/from '(\.[^']+\.ts)'/g)) {
    const helper = join(dirname(file), path);
    if (!helper.startsWith('test/') || found.has(helper)) continue;
    found.add(helper);
    helpersOf(helper, found);
  }
  return found;
}

it('every test file runs once', () => {
  expect([...filesOf(ownProcess), ...filesOf(sharedProcess)].sort()).toEqual(
    globSync('test/**/*.test.ts', { cwd: root }).sort(),
  );
});

it('shared processes load no helpers with hooks', () => {
  const hooked = (file: string) =>
    /^(before|after)(All|Each)\(|^(export )?const \w+ = (temporaryFolder|await Session\.create)\(/m.test(
      readFileSync(join(root, file), 'utf8'),
    );
  const wrong = filesOf(sharedProcess).flatMap((file) =>
    [...helpersOf(file)].filter(hooked).map((helper) => `${file}: ${helper}`),
  );
  expect(wrong).toEqual([]);
});
