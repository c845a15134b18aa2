/** Attacks on `serve`: it ends among requests, its model changes, its clients are slow. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MakeAttack } from '../attack.ts';
import { endOf, start, trainSmall } from '../commands.ts';

const CLIENTS = 4;
const MOST_LIFE_MILLISECONDS = 2500;
/** A server that takes longer to start or to end hangs. */
const PATIENCE_MILLISECONDS = 60_000;

/**
 * Ends `serve` by a signal at a random moment among requests, while its model is replaced, damaged and loaded
 * again: until the signal each answer is right for the version that it names, and each server starts again.
 */
export const serving: MakeAttack = ({ folder, random, count, find }) => {
  const model = join(folder, 'model');
  const models = ['first', 'second'].map((name) => join(folder, name));
  const askServer = asker(models.length, count);

  async function endAmongRequests(): Promise<void> {
    rmSync(model, { recursive: true, force: true });
    cpSync(models[random(2)], model, { recursive: true });
    const { child, address, ended } = await startServer(model);
    if (address === undefined) return find(`serve does not start: ${endOf(await ended)}`);
    const ending = new AbortController();
    const change = async (server: ChildProcess) => {
      while (!ending.signal.aborted) {
        const kind = random(3);
        if (kind === 0) replaceModel(model, models[random(2)]);
        else if (kind === 1) damageModel(model, random);
        else server.kill('SIGHUP');
        count('changes');
        await pause(random(300));
      }
    };
    const ask = async () => {
      while (!ending.signal.aborted) {
        const fault = await askServer(`${address}/recommend/10136?n=5`).catch(String);
        // A request that was running when the signal came may fail.
        if (ending.signal.aborted) return;
        if (fault !== undefined) return find(`serve before its end: ${fault}`);
      }
    };
    const work = [change(child), ...Array.from({ length: CLIENTS }, ask)];
    await pause(random(MOST_LIFE_MILLISECONDS));
    const signal = (['SIGTERM', 'SIGINT', 'SIGKILL'] as const)[random(3)];
    ending.abort();
    child.kill(signal);
    const end = await ended;
    await Promise.all(work);
    const isGood = !end.hung && (signal === 'SIGKILL' ? end.signal === signal : end.code === 0);
    count(isGood ? `ended by ${signal}` : 'found');
    if (!isGood) find(`serve after ${signal}: ${endOf(end)}`);
  }

  return {
    prepare: async () => {
      for (const [seed, to] of models.entries()) await trainSmall(to, '--seed', `${seed}`);
      return undefined;
    },
    round: async () => {
      for (let left = 3; left > 0; left--) await endAmongRequests();
    },
  };
};

/** Asks a server; gives the fault of the answer, which must be the same for each version of the model. */
function asker(models: number, count: (outcome: string) => void) {
  const known = new Map<string, string>();
  return async (url: string): Promise<string | undefined> => {
    const response = await fetch(url);
    const [text, version] = [await response.text(), response.headers.get('x-factorflow-model') ?? ''];
    if (response.status !== 200) return `${response.status} ${text}`;
    const expected = known.get(version) ?? text;
    known.set(version, expected);
    if (known.size > models) return `the version ${version} is of no model`;
    count(`answers of model ${[...known.keys()].indexOf(version) + 1}`);
    return text === expected ? undefined : `version ${version} gave ${expected}, and now ${text}`;
  };
}

/** Puts a copy of a model into place, as the documented cron job does. */
function replaceModel(model: string, other: string): void {
  const [next, old] = [`${model}-next`, `${model}-old`];
  cpSync(other, next, { recursive: true });
  rmSync(old, { recursive: true, force: true });
  renameSync(model, old);
  renameSync(next, model);
}

/** Cuts a file of the model short. */
function damageModel(model: string, random: (below: number) => number): void {
  const files = globSync('*/*', { cwd: model }).sort();
  const file = join(model, files[random(files.length)]);
  truncateSync(file, random(statSync(file).size));
}

/** Starts `serve`; the address is undefined if the server ends before it listens. */
async function startServer(model: string, ...flags: readonly string[]) {
  const line = ['serve', model, '--port', '0', '--poll', '0.1', ...flags];
  const { child, ended, stderrMatches } = start(line, { patience: PATIENCE_MILLISECONDS });
  const listening = stderrMatches(/ at (http:\/\/[^:]+:\d+)/).then(([, found]) => found);
  return { child, ended, address: await listening.catch(() => undefined) };
}

/** Clients that send their bodies slowly, and the requests that the server answers at a time. */
const SLOW_CLIENTS = 64;
const PLACES = 4;
/** Requests that the server has not read when it gets its signal. */
const UNREAD = 200;
const body = JSON.stringify({ users: [10136], n: 5 });
const head =
  'POST /recommend HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n' +
  `content-length: ${body.length}\r\n\r\n`;

/**
 * Clients that send bodies slowly to `serve` delay nobody, and SIGTERM leaves no request that was sent without
 * an answer, also if the server has not read it.
 */
export const servedClients: MakeAttack = ({ folder, random, count, find }) => {
  const model = join(folder, 'model');

  /** Starts a server, and has `work` done, which sends it SIGTERM. */
  async function serve(
    what: string,
    flags: readonly string[],
    work: (address: string, server: ChildProcess) => Promise<void>,
  ): Promise<void> {
    const { child, address, ended } = await startServer(model, ...flags);
    if (address === undefined) return find(`serve does not start: ${endOf(await ended)}`);
    await work(address, child);
    const end = await ended;
    if (end.code !== 0) find(`serve ${what}: ${endOf(end)}`);
  }

  async function askBesideSlowBodies(address: string, server: ChildProcess): Promise<void> {
    const clients = await Promise.all(Array.from({ length: SLOW_CLIENTS }, () => connected(address)));
    for (const client of clients) client.write(`${head}{`);
    for (let time = 0; time < 10; time++) {
      const headers = { 'content-type': 'application/json' };
      const { status } = await fetch(`${address}/recommend`, { method: 'POST', body, headers });
      count(`answers beside slow bodies: ${status}`);
      if (status !== 200) find(`serve with ${SLOW_CLIENTS} slow bodies answers ${status}`);
      for (const client of clients) client.write(' ');
      await pause(random(100));
    }
    for (const client of clients) client.destroy();
    server.kill('SIGTERM');
  }

  async function endWithUnreadRequests(address: string, server: ChildProcess): Promise<void> {
    // Some connections are open before, the others reach a server that accepts none.
    const open = await Promise.all(Array.from({ length: random(UNREAD) }, () => connected(address)));
    server.kill('SIGSTOP');
    while (open.length < UNREAD) open.push(await connected(address));
    const answers = open.map((client) => {
      client.write(head + body);
      return statusOf(client);
    });
    await pause(random(100));
    server.kill('SIGTERM');
    server.kill('SIGCONT');
    for (const status of await Promise.all(answers)) {
      count(`unread before SIGTERM: ${status}`);
      if (status !== '200' && status !== '503') find(`SIGTERM of serve ends a sent request with: ${status}`);
    }
  }

  return {
    prepare: async () => {
      await trainSmall(model, '--seed', '1');
      return undefined;
    },
    round: async () => {
      await serve('after slow bodies', ['--max-requests', `${PLACES}`], askBesideSlowBodies);
      await serve('with unread requests', [], endWithUnreadRequests);
    },
  };
};

async function connected(address: string): Promise<Socket> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  // Reported by `statusOf`; a server may end a slow client.
  return socket.on('error', () => {});
}

/** The status of the answer to a request, or the reason for no answer. */
function statusOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (data) => resolve(data.toString('latin1').split(' ')[1]));
    socket.once('error', (error) => resolve(error.message));
    socket.once('close', () => resolve('closed'));
  });
}
