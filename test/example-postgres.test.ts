/**
 * The example that needs a server of Postgres runs with one that this test starts, where its programs are.
 */
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const programs = (process.env.PATH ?? '').split(':').map((folder) => join(folder, 'initdb'));
const [initdb] = globSync([...programs, '/usr/lib/postgresql/*/bin/initdb']);
if (initdb === undefined)
  console.warn('SKIPPED: examples/14-postgres-cursor.ts, because Postgres is not installed (initdb)');

describe.skipIf(initdb === undefined)('the example of Postgres', () => {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-postgres-'));
  const [data, sockets] = [join(folder, 'data'), join(folder, 'sockets')];
  // Postgres refuses to run as root, so root starts it as another user.
  const nobody = 65_534;
  const as = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
  const postgres = (name: string, ...args: readonly string[]) =>
    execFileSync(join(dirname(initdb ?? ''), name), args, { ...as, cwd: folder, stdio: 'ignore' });

  beforeAll(() => {
    chmodSync(folder, 0o755);
    for (const path of [folder, sockets]) {
      mkdirSync(path, { recursive: true });
      if (as.uid !== undefined) chownSync(path, nobody, nobody);
    }
    postgres('initdb', '--pgdata', data, '--username', 'example', '--auth', 'trust');
    const options = `-c listen_addresses= -c unix_socket_directories=${sockets}`;
    postgres(
      'pg_ctl',
      'start',
      '--wait',
      '--pgdata',
      data,
      '--log',
      join(folder, 'log'),
      '--options',
      options,
    );
  });
  afterAll(() => {
    postgres('pg_ctl', 'stop', '--pgdata', data, '--mode', 'immediate');
    rmSync(folder, { recursive: true });
  });

  it('trains on a cursor, and writes recommendations into a table', async () => {
    const example = resolve(import.meta.dirname, '../examples/14-postgres-cursor.ts');
    const DATABASE_URL = `postgres://example@/postgres?host=${sockets}`;
    const { stdout } = await run(process.execPath, [example], { env: { ...process.env, DATABASE_URL } });
    expect(stdout).toMatch(/^(song-\d?[13579] [45]\.\d\n){3}$/);
  });
});
