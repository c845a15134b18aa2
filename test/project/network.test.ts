/** The program opens addresses that its caller names, and no others. */
import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { program, ratings } from '../cli/run-cli.ts';

const root = resolve(import.meta.dirname, '../..');

it('one module fetches, and no other opens a connection', () => {
  const folders = ['api', 'cli', 'connectors', 'cpu', 'engine', 'gpu', 'operators', 'synthetic'];
  const files = [...globSync(`{${folders}}/**/*.{ts,cts}`, { cwd: root }), 'index.ts', 'require.cts'];
  expect(files.length).toBeGreaterThan(500);
  const opening = new RegExp(
    String.raw`\bnew (?:WebSocket|EventSource|XMLHttpRequest)\b|` +
      String.raw`^import (?!type\b)[^;']*from '(?:node:)?(?:https?2?|net|tls|dgram|dns|undici)\b`,
    'm',
  );
  const found = files.filter((file) => opening.test(readFileSync(join(root, file), 'utf8')));
  expect(found.sort()).toEqual([
    // Standard input as a stream.
    'api/worker/stdin-thread.ts',
    // Forms of addresses alone.
    'cli/server/check-head.ts',
    // The address of a name to listen at.
    'cli/server/open-server.ts',
    'connectors/files/stored-bytes.ts',
    // Standard output as a stream.
    'connectors/output/standard-output.ts',
    // A local socket, whose name one process at a time can have.
    'gpu/cards/find-cards.ts',
  ]);
  const fetching = files.filter((file) =>
    /^(?!.*\basync fetch).*(?<![.\w])fetch\((?!\w+: )/m.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(fetching).toEqual(['connectors/http/request.ts']);
});

it('a command on files opens no connection and asks for no name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-network-'));
  const refuse = `data:text/javascript,${encodeURIComponent(`
    import { syncBuiltinESMExports } from 'node:module';
    import dgram from 'node:dgram';
    import dns from 'node:dns';
    import net from 'node:net';
    const refuse = (name) => () => { fs.writeSync(2, 'used: ' + name); process.exit(99); };
    import fs from 'node:fs';
    net.Socket.prototype.connect = refuse('connect');
    net.Server.prototype.listen = refuse('listen');
    dns.lookup = refuse('lookup');
    dgram.createSocket = refuse('createSocket');
    syncBuiltinESMExports();
  `)}`;
  const run = (...args: string[]) =>
    execFileSync(process.execPath, ['--import', refuse, program, ...args], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  try {
    const model = join(folder, 'model');
    run('train', ratings, '--rank', '2', '--max-iter', '1', '--device', 'cpu', '--model-dir', model);
    expect(run('recommend', model, '--users', '1', '--json')).toContain('"recommend"');
    expect(() => run('inspect', 'http://127.0.0.1:49999/ratings.csv')).toThrow('used: connect');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
