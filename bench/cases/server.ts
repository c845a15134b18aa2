import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ALS, Session } from '../../index.ts';
import { CounterRandom } from '../../engine/random.ts';
import { atRate, type Outcome, percentile, saturate } from '../engines/http-load.ts';
import type { Case } from '../harness.ts';

const [USERS, ITEMS, RANK, EACH] = [20_000, 100_000, 64, 60];
const CONNECTIONS = 32;

const server: Case = {
  about:
    'The command `serve` under load, with a model of 100,000 items at rank 64: requests for ten items ' +
    'at a fixed rate and at saturation. The generator runs on the same cores. --filter is a condition ' +
    'of each request.',
  options: { seconds: '5', rate: '800', filter: '' },
  columns: { p99: 'ms', p50: 'ms', longest: 'ms', answered: '1/s', failed: '', processor: 'ms a request' },
  rounds: 5,
  async *rows({ options, builds }) {
    const [seconds, rate] = [Number(options.seconds), Number(options.rate)];
    const folder = resolve(import.meta.dirname, '../../build/bench-server/model');
    if (!existsSync(folder)) await train(folder);
    const filter = options.filter === '' ? '' : `&filter=${encodeURIComponent(options.filter)}`;
    const path = () => `/recommend/${Math.floor(Math.random() * USERS)}?n=10${filter}`;
    const servers: Record<string, Server> = {};
    try {
      for (const [build, main] of Object.entries(builds)) {
        servers[build] = await start(main, folder);
        await saturate(servers[build].port, path, CONNECTIONS, 2);
      }
      const of = (load: (port: number) => Promise<Outcome>) =>
        Object.fromEntries(
          Object.entries(servers).map(([build, { port, pid }]) => [
            build,
            async () => {
              const before = processorSeconds(pid);
              const run = await load(port);
              const processor = (1000 * (processorSeconds(pid) - before)) / run.times.length;
              const [p99, p50, longest] = [0.99, 0.5, 1].map((share) => percentile(run, share));
              return {
                p99,
                p50,
                longest,
                answered: run.times.length / run.seconds,
                failed: run.failed,
                processor,
              };
            },
          ]),
        );
      yield { name: `at ${rate}/s`, engines: of((port) => atRate(port, path, rate, seconds)) };
      yield { name: 'saturated', engines: of((port) => saturate(port, path, CONNECTIONS, seconds)) };
    } finally {
      for (const { end } of Object.values(servers)) end();
    }
  },
};
export default server;

interface Server {
  readonly port: number;
  readonly pid: number;
  end(): void;
}

async function start(main: string, folder: string): Promise<Server> {
  const child = spawn(process.execPath, [main, 'serve', folder, '--port', '0', '--poll', '0'], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  while (!log.includes(' at http') && child.exitCode === null) await pause(50);
  const port = Number(/ at http:\/\/[^:]+:(\d+)/.exec(log)?.[1]);
  return { port, pid: child.pid ?? 0, end: () => void child.kill('SIGTERM') };
}

/** Of all threads of a process; by Linux. */
function processorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/**
 * Trains on ratings with a few tastes: a user likes items of some groups, and some items have many ratings.
 */
async function train(folder: string): Promise<void> {
  await using session = await Session.create({ device: 'cpu' });
  const random = new CounterRandom(7);
  let at = 0;
  const uniform = () => random.uniform(at++);
  const item = () => (uniform() < 0.08 ? Math.floor(uniform() * ITEMS) : Math.floor(uniform() ** 3 * ITEMS));
  const rows = function* () {
    for (let each = 0; each < ITEMS; each++) yield rating(Math.floor(uniform() * USERS), each);
    for (let user = 0; user < USERS; user++) for (let k = 0; k < EACH; k++) yield rating(user, item());
  };
  const rating = (user: number, each: number) => {
    const taste = Math.cos(user * (1 + (each % 17)) * 0.37) + Math.cos(each * 0.11 + (user % 23));
    return { user, item: each, rating: Math.max(1, Math.min(5, 3.5 + taste + uniform() - 0.5)) };
  };
  const model = await new ALS({ rank: RANK, maxIter: 3, seed: 1 }).fit(session.fromRows(rows()));
  await model.save(folder, { overwrite: true });
}
