/** Texts from data are printed without characters that a terminal acts on; JSON contains them as escapes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { shownText } from '../../connectors/output/byte-output.ts';
import { factorflow, fails, objectOf, quick, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
/** Also the characters that turn the direction of text. */
const control = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

function written(name: string, rows: readonly object[]): string {
  writeFileSync(path(name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return path(name);
}

describe('control characters of data', () => {
  it('are replaced in tables and in progress, and escaped in JSON', async () => {
    const users = ['u\u001b[31m1', 'u\u001b[31m2', 'u\u009b3\u202e\u007f'];
    const rows = users.flatMap((user, u) =>
      ['\u001b]0;a\u0007', 'b'].map((item, i) => ({ user, item, rating: u + i })),
    );
    const trained = await factorflow(
      'train',
      written('ids.ndjson', rows),
      ...quick,
      '--model-dir',
      path('model'),
    );
    expect(trained.code).toBe(0);
    const args = ['recommend', path('model'), '--users', users[0], '-n', '2'];
    const { stdout } = await factorflow(...args, '--quiet');
    expect(stdout).toContain('u\ufffd[31m1');
    expect(stdout).not.toMatch(control);
    const ofBoth = ['recommend', path('model'), '--users', `${users[0]},${users[2]}`, '-n', '1'];
    const json = (await factorflow(...ofBoth, '--json', '--quiet')).stdout;
    expect(json).not.toMatch(control);
    expect(objectOf(json).recommendations).toMatchObject([{ user: users[0] }, { user: users[2] }]);
  });

  it('leave the columns of a table in line', async () => {
    const [user, item] = ['us\u001b[31mer', 'it\u202eem'];
    const file = written('columns.ndjson', [{ [user]: 1, [item]: 2, rating: 3 }]);
    const { stdout } = await factorflow('inspect', file, '--user-col', user, '--item-col', item);
    const table = stdout.split('\n').filter((line) => /^[│┌├└]/.test(line));
    expect(table.join('\n')).toContain('us\ufffd[31mer');
    expect(new Set(table.map((line) => line.length)).size).toBe(1);
  });

  it('are replaced in errors that show a value', async () => {
    const bad = written('bad.ndjson', [{ user: 1, item: 2, rating: 'x\u001b]0;y\u0007' }]);
    await fails(3, /rating "x\ufffd\]0;y\ufffd" is not a number/, 'train', bad, '--model-dir', path('none'));
  });

  it('do not make a message of a value or of the name of a file', async () => {
    const { code, stderr } = await factorflow('inspect', path('a\u202e\nfactorflow: all is well.csv'));
    expect(code).toBe(3);
    expect(stderr).toMatch(/^factorflow: .* \(.*a\ufffd factorflow: all is well\.csv\).*\n$/);
  });

  it('are replaced in rows for a terminal, also where a batch cuts a character', () => {
    const shown = shownText();
    const bytes = Buffer.from('a\u001b]0;x\u0007,\u009b1m\u202e,\u00fc\n');
    const parts = [...bytes].map((byte) => Buffer.from(shown(Uint8Array.of(byte))).toString());
    expect(parts.join('')).toBe('a\ufffd]0;x\ufffd,\ufffd1m\ufffd,\u00fc\n');
  });
});
