/** The command `serve` as a process: signals under load, and what it refuses to start with. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { FASTIFY } from '../../cli/server/load-fastify.ts';
import { packageInfo } from '../../api/package-info.ts';
import { factorflow, objectOf, ratings, start, trainedModel } from './run-cli.ts';
import type { Started } from '../support/start-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const model = await trainedModel();

interface Serving extends Started {
  readonly address: string;
}

const servers: Started[] = [];
afterAll(() => servers.forEach(({ child }) => child.kill('SIGKILL')));

function serve(...args: readonly string[]): Promise<Serving> {
  return serveWith([], ...args);
}

async function serveWith(nodeArgs: readonly string[], ...args: readonly string[]): Promise<Serving> {
  let text = '';
  const started = start(['serve', model, '--port', '0', '--poll', '0', ...args], { nodeArgs });
  servers.push(started);
  started.child.stderr?.on('data', (chunk: string) => (text += chunk));
  await started.stderrMatches(/serving \S+ at http:\S+:\d+: model/);
  return { ...started, address: / at (http:\S+):/.exec(text)?.[1] ?? '' };
}

/** Asks until the server is gone; returns the statuses of all answers. */
async function askAll(address: string): Promise<number[]> {
  const statuses: number[] = [];
  const client = async () => {
    for (;;) {
      const answer = await fetch(`${address}/recommend/26?n=3`).catch(() => undefined);
      if (answer === undefined) return;
      await answer.text();
      statuses.push(answer.status);
    }
  };
  await Promise.all(Array.from({ length: 4 }, client));
  return statuses;
}

it('SIGTERM under load answers what runs, and ends with 0', async () => {
  const { address, child, outcome } = await serve('--json');
  const statuses = askAll(address);
  for (let sent = 0; sent < 20; sent++) await fetch(`${address}/recommend/26`).then((one) => one.text());
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await outcome;
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('stopping in order') });
  for (const status of await statuses) expect([200, 503]).toContain(status);
  expect(objectOf(stdout)).toMatchObject({ command: 'serve', address, requests: expect.any(Number) });
});

/** Sends a request that never ends, and waits until the server has its head. */
async function askForEver(address: string) {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname).on('error', () => {});
  await once(socket, 'connect');
  socket.write('POST /fold-in HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n');
  socket.write('expect: 100-continue\r\ncontent-length: 9\r\n\r\n{');
  await once(socket, 'data');
  return socket;
}

it('SIGHUP loads the model again; a second signal ends at once', async () => {
  const { address, child, outcome, stderrMatches } = await serve('--grace', '3600');
  child.kill('SIGHUP');
  await stderrMatches(/loaded \S+ again in/);
  const socket = await askForEver(address);
  child.kill('SIGTERM');
  await stderrMatches(/stopping in order/);
  child.kill('SIGTERM');
  expect((await outcome).code).toBe(130);
  socket.destroy();
});

it.skipIf(process.platform === 'win32').each([
  ['this thread', 'read()'],
  ['another thread', 'new Worker(`const read = ${read}; read()`, { eval: true })'],
])('a second signal ends at once while %s reads a file that never answers', async (where, work) => {
  const [pipe, script] = [join(folder, where), join(folder, `${where}.cjs`)];
  execFileSync('mkfifo', [pipe]);
  writeFileSync(
    script,
    `const { isMainThread, Worker } = require('node:worker_threads');
     const read = () => void require('node:fs').promises.readFile(${JSON.stringify(pipe)});
     if (isMainThread) ${work};`,
  );
  const { address, child, outcome, stderrMatches } = await serveWith(
    ['--require', script],
    '--grace',
    '3600',
  );
  const socket = await askForEver(address);
  child.kill('SIGTERM');
  await stderrMatches(/stopping in order/);
  child.kill('SIGTERM');
  expect((await outcome).code).toBe(130);
  socket.destroy();
});

it('running requests that do not end are cut off after the grace time', async () => {
  const { address, child, outcome } = await serve('--grace', '0');
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname).on('error', () => {});
  await once(socket, 'connect');
  socket.write('POST /fold-in HTTP/1.1\r\nhost: localhost\r\n');
  child.kill('SIGTERM');
  expect((await outcome).code).toBe(0);
  socket.destroy();
});

it('a port in use, a bad token, a missing model and a wrong flag are errors of the user', async () => {
  const { address } = await serve();
  const { port } = new URL(address);
  for (const [args, code, text] of [
    [[model, '--port', port], 2, 'another program does. Choose another port'],
    [[model, '--token-file', ratings], 3, 'more than 4.0 KiB'],
    [[model, '--port', '70000'], 2, '--port must be a whole number from 0 to 65,535'],
    [[model, '--item-names-col', 'a'], 2, '--item-names-col acts only with --item-names'],
    [[join(folder, 'nothing')], 3, 'nothing'],
  ] as const) {
    const outcome = await factorflow('serve', ...args);
    expect({ args, ...outcome }).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(text) });
  }
});

it('the error about a missing Fastify names the major release of package.json', () => {
  const { peerDependencies } = packageInfo() as unknown as { peerDependencies: Record<string, string> };
  expect(`^${FASTIFY.replace('fastify@', '')}.0.0`).toBe(peerDependencies.fastify);
});
