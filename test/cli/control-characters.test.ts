/** Texts of data reach the terminal without characters that it acts on; JSON has them as they are. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fails, objectOf, quick, runHere, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const control = /(?![\n\t])\p{Cc}/u;

function written(name: string, rows: readonly object[]): string {
  writeFileSync(path(name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return path(name);
}

describe('control characters of data', () => {
  it('are replaced in tables and in progress, and kept in JSON', async () => {
    const users = ['u\u001b[31m1', 'u\u001b[31m2', 'u\u009b3'];
    const rows = users.flatMap((user, u) =>
      ['\u001b]0;a\u0007', 'b'].map((item, i) => ({ user, item, rating: u + i })),
    );
    const trained = await runHere(
      'train',
      written('ids.ndjson', rows),
      ...quick,
      '--model-dir',
      path('model'),
    );
    expect(trained.code).toBe(0);
    const args = ['recommend', path('model'), '--users', users[0], '-n', '2'];
    const { stdout } = await runHere(...args, '--quiet');
    expect(stdout).toContain('u\ufffd[31m1');
    expect(stdout).not.toMatch(control);
    const { recommendations } = objectOf((await runHere(...args, '--json', '--quiet')).stdout);
    expect(recommendations).toMatchObject([{ user: users[0] }, { user: users[0] }]);
  });

  it('are replaced in errors that show a value', async () => {
    const bad = written('bad.ndjson', [{ user: 1, item: 2, rating: 'x\u001b]0;y\u0007' }]);
    await fails(3, /rating "x\ufffd\]0;y\ufffd" is not a number/, 'train', bad, '--model-dir', path('none'));
  });
});
