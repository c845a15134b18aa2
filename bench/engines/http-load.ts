/** A load generator for HTTP on few connections, with plain sockets: it shares the cores with the server. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface Outcome {
  /** Milliseconds of each answered request, ascending. */
  readonly times: readonly number[];
  /** Answers with another status than 200. */
  readonly failed: number;
  readonly seconds: number;
}

/** One connection, which has at most one request at a time. */
class Connection {
  readonly #socket: Socket;
  #received = '';
  #done: ((status: number) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket.setNoDelay().setEncoding('latin1');
    socket.on('data', (chunk: string) => this.#receive(chunk));
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Connection(socket);
  }

  /** The status of the answer. */
  get(path: string): Promise<number> {
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: string): void {
    this.#received += chunk;
    const head = this.#received.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#received)?.[1] ?? 0);
    if (this.#received.length < head + 4 + length) return;
    const status = Number(this.#received.slice(9, 12));
    this.#received = '';
    this.#done?.(status);
  }
}

/** Asks on all connections without pause. */
export async function saturate(port: number, path: () => string, connections: number, seconds: number) {
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(port)));
  const times: number[] = [];
  let failed = 0;
  const start = performance.now();
  const end = start + 1000 * seconds;
  const client = async (connection: Connection) => {
    for (let now = performance.now(); now < end;) {
      if ((await connection.get(path())) !== 200) failed++;
      const then = performance.now();
      times.push(then - now);
      now = then;
    }
    connection.close();
  };
  await Promise.all(open.map(client));
  return outcome(times, failed, start);
}

/**
 * Asks at a fixed rate, whether or not earlier requests are answered. Times count from the moment at which a
 * request was due, so that waiting for a connection is part of them.
 */
export async function atRate(
  port: number,
  path: () => string,
  rate: number,
  seconds: number,
): Promise<Outcome> {
  const idle = await Promise.all(Array.from({ length: 64 }, () => Connection.open(port)));
  const waiting: number[] = [];
  const times: number[] = [];
  let [failed, sent] = [0, 0];
  const start = performance.now();
  const total = Math.round(rate * seconds);
  const all = Promise.withResolvers<void>();
  const ask = async (connection: Connection, due: number): Promise<void> => {
    if ((await connection.get(path())) !== 200) failed++;
    times.push(performance.now() - due);
    if (times.length === total) all.resolve();
    const next = waiting.shift();
    if (next === undefined) idle.push(connection);
    else await ask(connection, next);
  };
  const timer = setInterval(() => {
    const due = Math.min(total, Math.floor(((performance.now() - start) / 1000) * rate));
    for (; sent < due; sent++) {
      const moment = start + (1000 * (sent + 1)) / rate;
      const connection = idle.pop();
      if (connection === undefined) waiting.push(moment);
      else void ask(connection, moment);
    }
    if (sent === total) clearInterval(timer);
  }, 1);
  await all.promise;
  for (const connection of idle) connection.close();
  return outcome(times, failed, start);
}

function outcome(times: number[], failed: number, start: number): Outcome {
  return { times: times.sort((a, b) => a - b), failed, seconds: (performance.now() - start) / 1000 };
}

export function percentile({ times }: Outcome, share: number): number {
  return times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? Number.NaN;
}
