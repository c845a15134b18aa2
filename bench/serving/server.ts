/**
 * The command `serve` under load, with a trained model of 100,000 items at rank 64: requests for ten items at
 * a fixed rate and at saturation, and reloads under load. The generator runs on the same cores. Prints each
 * run and the medians.
 *
 *     npm run build && node bench/serving/server.ts [--runs 5] [--seconds 5] [--rate 800] [--reloads 20]
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ALS, Session } from '../../index.ts';
import { CounterRandom } from '../../engine/random.ts';
import { describeMachine } from '../machine.ts';
import { atRate, type Outcome, percentile, saturate } from './http-load.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    rate: { type: 'string', default: '800' },
    reloads: { type: 'string', default: '20' },
    filter: { type: 'string' },
    serve: { type: 'string', multiple: true, default: [] },
  },
});
const [runs, seconds, rate, reloads] = [values.runs, values.seconds, values.rate, values.reloads].map(Number);
const [USERS, ITEMS, RANK, EACH] = [20_000, 100_000, 64, 60];
const root = resolve(import.meta.dirname, '../..');
const folder = join(root, 'build/bench-server/model');

/**
 * Trains on ratings with a few tastes: a user likes items of some groups, and some items have many ratings.
 */
async function train(): Promise<void> {
  const session = await Session.create({ device: 'cpu' });
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
  await session.close();
}

const memory = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;

/** Seconds of processor time of the server, all threads, and of this process. */
const busy = (pid: number) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  const { user, system } = process.cpuUsage();
  return { server: (Number(fields[11]) + Number(fields[12])) / 100, client: (user + system) / 1e6 };
};

const show = (name: string, run: Outcome) =>
  console.log(
    `${name.padEnd(12)} ${Math.round(run.times.length / run.seconds)}/s  ` +
      `p50 ${percentile(run, 0.5).toFixed(2)}  p99 ${percentile(run, 0.99).toFixed(2)}  ` +
      `max ${percentile(run, 1).toFixed(1)} ms  failed ${run.failed}  load ${loadavg()[0].toFixed(1)}`,
  );

const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[list.length >> 1];

if (!existsSync(folder)) await train();
const program = join(root, 'dist/programs/cli/main.js');
const server = spawn(
  process.execPath,
  [program, 'serve', folder, '--port', '0', '--poll', '0', ...values.serve],
  {
    stdio: ['ignore', 'inherit', 'pipe'],
  },
);
let log = '';
server.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
while (!log.includes(' at http') && server.exitCode === null) await pause(50);
const port = Number(/ at http:\/\/[^:]+:(\d+)/.exec(log)?.[1]);
const pid = server.pid ?? 0;
const filter = values.filter === undefined ? '' : `&filter=${encodeURIComponent(values.filter)}`;
const path = () => `/recommend/${Math.floor(Math.random() * USERS)}?n=10${filter}`;
try {
  console.log(`${describeMachine()}, load ${loadavg()[0].toFixed(1)}\n${log.trim()}`);
  await saturate(port, path, 32, 2);
  const [fixed, full]: [Outcome[], Outcome[]] = [[], []];
  const start = busy(pid);
  for (let run = 0; run < runs; run++) {
    fixed.push(await atRate(port, path, rate, seconds));
    show(`at ${rate}/s`, fixed[run]);
    full.push(await saturate(port, path, 32, seconds));
    show('saturated', full[run]);
  }
  console.log(
    `median of ${runs}: p99 ${median(fixed.map((run) => percentile(run, 0.99))).toFixed(2)} ms at ${rate}/s, ` +
      `${Math.round(median(full.map((run) => run.times.length / run.seconds)))}/s at saturation`,
  );
  const end = busy(pid);
  const requests = [...fixed, ...full].reduce((sum, { times }) => sum + times.length, 0);
  console.log(
    `processor time of a request: server ${((1000 * (end.server - start.server)) / requests).toFixed(3)} ms, ` +
      `generator ${((1000 * (end.client - start.client)) / requests).toFixed(3)} ms`,
  );
  if (reloads > 0) {
    const before = memory(pid);
    const lines = () => log.split('loaded ').length - 1;
    const loading = saturateUntilReloaded();
    for (let done = 0; done < reloads; done++) {
      server.kill('SIGHUP');
      while (lines() <= done && server.exitCode === null) await pause(20);
      if (done % 5 === 4) console.log(`after ${done + 1} reloads: ${memory(pid).toFixed(0)} MiB`);
    }
    const run = await loading.end();
    show('reloading', run);
    console.log(`memory before ${before.toFixed(0)} MiB, after ${memory(pid).toFixed(0)} MiB`);
  }
} finally {
  server.kill('SIGTERM');
}

/** Asks at half the rate, a second at a time, until `end` is called. */
function saturateUntilReloaded() {
  const stopped = new AbortController();
  const all: number[] = [];
  let [failed, total] = [0, 0];
  const running = (async () => {
    while (!stopped.signal.aborted) {
      const run = await atRate(port, path, rate / 2, 1);
      all.push(...run.times);
      failed += run.failed;
      total += run.seconds;
    }
  })();
  return {
    end: async (): Promise<Outcome> => {
      stopped.abort();
      await running;
      return { times: all.sort((a, b) => a - b), failed, seconds: total };
    },
  };
}
