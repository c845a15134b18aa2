import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MakeAttack } from './attack.ts';
import { startServer, trainModel } from './serving.ts';

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

  async function answersBesideSlowBodies(): Promise<void> {
    const { server, address, ended } = await startServer(model, '--max-requests', `${PLACES}`);
    if (address === undefined) return find(`serve does not start: ${(await ended).stderr}`);
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
    const end = await ended;
    if (end.code !== 0) find(`serve after slow bodies: ${end.signal ?? end.code}, ${end.stderr}`);
  }

  async function endWithUnreadRequests(): Promise<void> {
    const { server, address, ended } = await startServer(model);
    if (address === undefined) return find(`serve does not start: ${(await ended).stderr}`);
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
    const end = await ended;
    if (end.code !== 0) find(`serve with unread requests: ${end.signal ?? end.code}, ${end.stderr}`);
  }

  return {
    name: 'serve clients',
    prepare: async () => {
      await trainModel(model, 1);
      return undefined;
    },
    round: async () => {
      await answersBesideSlowBodies();
      await endWithUnreadRequests();
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
