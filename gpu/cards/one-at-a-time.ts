import { createServer, type Server } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/**
 * Milliseconds between two attempts to get the lock, and milliseconds after which the work is done without
 * it.
 */
const PAUSE = 50;
const PATIENCE = 60_000;

/**
 * Does work while no other process of this Linux machine does work with the same name. The lock is an
 * abstract socket of that name: the kernel releases it when the process ends, even by a crash. Processes in
 * containers with their own networks do not see each other.
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

/** Tries to get the lock. Returns the socket that holds it, or undefined if another process has it. */
function listening(name: string): Promise<Server | undefined> {
  return new Promise((done) => {
    const server = createServer((socket) => socket.destroy()).unref();
    server.once('error', () => done(undefined));
    server.listen(`\0${name}`, () => done(server));
  });
}
