/**
 * Sends one signal at random moments to train, tune and convert on Parquet, CSV and a web server, to `serve`
 * and to the example server, and prints how long each takes to end. Beyond half a second, and with leftovers,
 * it fails.
 * Times hold on an idle machine: the load is printed with them.
 *
 *     npm run build && node scripts/torture/cancel.ts [--moments 200] [--seed 1] [--ratings 400000]
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { randomOf } from '../../test/support/damage/mutations.ts';
import { sendRange } from '../../test/support/send-range.ts';

const MOST_MILLISECONDS = 500;
/** A process that goes on for longer is killed and counts as this. */
const PATIENCE_MILLISECONDS = 30_000;
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

const root = resolve(import.meta.dirname, '../..');
const program = join(root, 'dist/programs/cli/main.js');
const folder = mkdtempSync(join(tmpdir(), 'factorflow-cancel-'));
const outputs = join(folder, 'outputs');
mkdirSync(outputs);
const options = {
  moments: { type: 'string', default: '200' },
  seed: { type: 'string', default: '1' },
} as const;
const { values } = parseArgs({ options: { ...options, ratings: { type: 'string', default: '400000' } } });
const random = randomOf(Number(values.seed));

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Milliseconds of the whole run, and those after the signal. */
  readonly time: number;
  readonly after: number;
}

/** Runs Node with these arguments, and sends the signal after `moment` milliseconds where one is given. */
function run(args: readonly string[], env: NodeJS.ProcessEnv = {}, moment?: number): Promise<Ended> {
  return new Promise((done) => {
    const child = spawn(process.execPath, args, {
      cwd: root,
      stdio: 'ignore',
      env: { ...process.env, ...env },
    });
    const started = performance.now();
    let sent = Number.NaN;
    const timers = [setTimeout(() => child.kill('SIGKILL'), (moment ?? 600_000) + PATIENCE_MILLISECONDS)];
    const send = () => {
      sent = performance.now();
      child.kill(SIGNALS[random(2)]);
    };
    if (moment !== undefined) timers.push(setTimeout(send, moment));
    child.on('exit', (code, signal) => {
      timers.forEach(clearTimeout);
      const now = performance.now();
      done({ code, signal, time: now - started, after: now - sent });
    });
  });
}

/** A server of the folder's files that knows ranges, as object stores do. */
const server = createServer((request, reply) => {
  const content = readFileSync(join(folder, decodeURIComponent(request.url ?? '/')));
  sendRange(request, reply, content, { ETag: '"1"' });
});

async function prepare(): Promise<string> {
  const data = join(folder, 'data');
  const size = ['--users', '20000', '--items', '4000', '--ratings', values.ratings];
  const made = [
    ['generate', ...size, '--output', data],
    ['convert', join(data, 'train'), join(folder, 'ratings.parquet')],
    ['convert', join(data, 'train'), join(folder, 'ratings.csv')],
  ];
  for (const args of made) {
    const { code } = await run([program, ...args, '--quiet']);
    if (code !== 0) throw new Error(`factorflow ${args.join(' ')} ended with ${code}`);
  }
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Case {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Milliseconds in which the signal comes. */
  span: number;
}

function casesOf(address: string): Case[] {
  const inputs = {
    parquet: join(folder, 'ratings.parquet'),
    csv: join(folder, 'ratings.csv'),
    'http, parquet': `${address}/ratings.parquet`,
    'http, csv': `${address}/ratings.csv`,
  };
  const commands: Readonly<Record<string, (input: string) => string[]>> = {
    train: (input) => [
      'train',
      input,
      '--rank',
      '16',
      '--max-iter',
      '6',
      '--model-dir',
      join(outputs, 'model'),
    ],
    tune: (input) => ['tune', input, '--trials', '2', '--rank', '8', '--model-dir', join(outputs, 'tuned')],
    convert: (input) => ['convert', input, join(outputs, 'rows.parquet')],
  };
  const all = Object.entries(commands).flatMap(([name, line]) =>
    Object.entries(inputs).map(([kind, input]): Case => {
      const args = [program, ...line(input), '--device', 'cpu', '--force', '--quiet'];
      return { name: `${name}, ${kind}`, args: name === 'convert' ? args.filter(notDevice) : args, span: 0 };
    }),
  );
  const example = [join(root, 'examples/08-serve-with-fastify.ts')];
  const serve = [program, 'serve', join(outputs, 'model'), '--port', '0'];
  return [
    ...all,
    { name: 'example server', args: example, env: { PORT: '0' }, span: 4000 },
    { name: 'serve', args: serve, span: 2000 },
  ];
}

const notDevice = (word: string) => word !== '--device' && word !== 'cpu';

/** Names in the folder of outputs that are no whole outputs. */
function leftovers(): string[] {
  return readdirSync(outputs).filter((name) => name.startsWith('.'));
}

let found = 0;
const taken: number[] = [];
try {
  const cases = casesOf(await prepare());
  for (const one of cases) {
    if (one.span > 0) continue;
    const { code, time } = await run(one.args);
    if (code !== 0) throw new Error(`${one.name} ended with ${code}`);
    one.span = time;
  }
  for (let left = Number(values.moments); left > 0; left--) {
    const { name, args, env, span } = cases[random(cases.length)];
    const moment = random(Math.ceil(span));
    const { code, signal, after } = await run(args, env, moment);
    if (Number.isNaN(after)) continue;
    taken.push(after);
    const left = leftovers();
    const isGood = after <= MOST_MILLISECONDS && left.length === 0 && signal !== 'SIGKILL' && code !== 1;
    if (isGood) continue;
    found++;
    const how = `${signal ?? code} ${after.toFixed(0)} ms after a signal at ${moment} of ${span.toFixed(0)} ms`;
    console.log(`found: ${name} ended with ${how}${left.length > 0 ? `, and left ${left.join(', ')}` : ''}`);
  }
} finally {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
}
const sorted = taken.toSorted((a, b) => a - b);
const at = (part: number) =>
  `${(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0).toFixed(0)} ms`;
console.log(
  `${taken.length} signals: median ${at(0.5)}, 90 % ${at(0.9)}, 99 % ${at(0.99)}, most ${at(1)};`,
  `${found} found; load of the machine ${loadavg()[0].toFixed(1)}`,
);
process.exitCode = found > 0 ? 1 : 0;
