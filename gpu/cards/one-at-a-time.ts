import { createServer, type Server } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** Milliseconds between two tries, and those after which the work is done in spite of the other process. */
const PAUSE = 50;
const PATIENCE = 60_000;

/**
 * Does work while no other process of this Linux machine does work of that name: a socket without a file has
 * the name, and the kernel takes it back when its process ends, in each way. Processes in containers with
 * networks of their own do not see each other.
 *
 */
export async function oneAtATime<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
  const until = performance.now() + PATIENCE;
  let held = await listening(name);
  while (held === undefined && performance.now() < until) {
    await setTimeout(PAUSE);
    held = await listening(name);
  }
  try {
    return await work();
  } finally {
    held?.close();
  }
}

/** The socket; undefined where another process has the name. */
function listening(name: string): Promise<Server | undefined> {
  return new Promise((done) => {
    const server = createServer((socket) => socket.destroy()).unref();
    server.once('error', () => done(undefined));
    server.listen(`\0${name}`, () => done(server));
  });
}
