/**
 * Requests for one user's ten best of 100,000 items at rank 64, with a hundred seen items excluded, from a
 * loaded model: one after the other, with pauses and without. Prints p50, p99 and the longest stall of the
 * event loop, measured by a histogram and by a timer of 1 ms. Factors: lengths that fall like a trained
 * model's, with and without biases, and Gaussian ones, whose lengths are nearly equal.
 *
 *     node bench/serving/serve.ts [REQUESTS] [ITEMS]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { Model, Session } from '../../index.ts';
import { describeMachine } from '../machine.ts';

const [requests, items] = [Number(process.argv[2] ?? 2000), Number(process.argv[3] ?? 100_000)];
const [users, rank] = [20_000, 64];
const kinds = ['trained', 'trained, biases', 'gaussian'] as const;
type Kind = (typeof kinds)[number];

const gaussian = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
const keys = (count: number) =>
  ({ type: 'int32', values: Int32Array.from({ length: count }, (_, i) => 3 * i + 1) }) as const;

/**
 * Rows with Gaussian directions; rows like a trained model's have lengths of 0.05 to 1, by popularity. Biases
 * are two additional features.
 */
function factors(kind: Kind, side: 'user' | 'item', rows: number): Float32Array {
  const width = rank + (kind === 'trained, biases' ? 2 : 0);
  const values = new Float32Array(new SharedArrayBuffer(4 * rows * width));
  for (let row = 0; row < rows; row++) {
    const length = kind === 'gaussian' || side === 'user' ? 1 : Math.exp(-3 * Math.random());
    for (let k = 0; k < rank; k++) values[row * width + k] = (length * gaussian()) / Math.sqrt(rank);
    if (width === rank) continue;
    values[row * width + rank] = side === 'user' ? 3.5 + 0.3 * gaussian() : 1;
    values[row * width + rank + 1] = side === 'user' ? 1 : 0.3 * gaussian();
  }
  return values;
}

/** The longest delay of a timer of 1 ms. */
function watch() {
  let [last, longest] = [performance.now(), 0];
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 1);
    last = now;
  }, 1);
  return () => {
    clearInterval(timer);
    return longest;
  };
}

/** Recommends to a user without these items; returns the length of the list. */
type Call = (user: number, deny: readonly number[]) => Promise<number>;

/** A line of the table: all requests by one call, after a hundred warm-up requests. */
async function measured(name: string, call: Call, paused: boolean): Promise<string> {
  const times: number[] = [];
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  let stop = () => 0;
  for (let i = -100; i < requests; i++) {
    if (i === 0) {
      stop = watch();
      histogram.enable();
    }
    const user = 3 * Math.floor(Math.random() * users) + 1;
    const deny = Array.from({ length: 100 }, () => 3 * Math.floor(Math.random() * items) + 1);
    const start = performance.now();
    if ((await call(user, deny)) !== 10) throw new Error('a list is short');
    if (i >= 0) times.push(performance.now() - start);
    if (paused || i % 16 === 0) await pause(1);
  }
  histogram.disable();
  const stall = stop();
  times.sort((left, right) => left - right);
  const at = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(2).padStart(7);
  const way = paused ? 'with pauses' : 'at once';
  return `${name.padEnd(18)} ${way.padEnd(11)} ${at(0.5)} ${at(0.99)} ${at(1).padStart(10)}   ${(histogram.max / 1e6 - 1).toFixed(1)}, ${stall.toFixed(1)}`;
}

const folder = mkdtempSync(join(tmpdir(), 'factorflow-serve-'));
const session = await Session.create({ device: 'cpu' });
console.log(
  `${describeMachine()}\n${requests} requests, ${items} items, rank ${rank}, n = 10, 100 items left out\n`,
);
const idle = watch();
await pause(2000);
console.log(`the longest stall in two seconds without requests, for comparison: ${idle().toFixed(1)} ms\n`);
console.log(
  'factors          call               requests     p50 ms  p99 ms  longest ms  stall ms (histogram, timer)',
);
for (const kind of kinds) {
  const biases = kind === 'trained, biases';
  const made = new Model({
    rank: rank + (biases ? 2 : 0),
    users: keys(users),
    items: keys(items),
    userFactors: factors(kind, 'user', users),
    itemFactors: factors(kind, 'item', items),
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session,
    metadata: { params: { biases } },
  });
  await made.save(join(folder, kind));
  const loading = watch();
  const model = await session.loadModel(join(folder, kind));
  await model.prepare();
  console.log(`${kind.padEnd(16)} load and prepare ${' '.repeat(46)} ${loading().toFixed(1)}`);
  const calls: Record<string, Call> = {
    recommend: async (user, deny) => (await model.recommend(user, 10, { deny })).items.length,
    recommendForUsers: async (user, deny) => {
      let rows = 0;
      for await (const batch of model.recommendForUsers([user], 10, { deny })) rows += batch.numRows;
      return rows;
    },
  };
  for (const [name, call] of Object.entries(calls))
    for (const paused of [false, true])
      console.log(`${kind.padEnd(16)} ${await measured(name, call, paused)}`);
  await model.close();
}
await session.close();
rmSync(folder, { recursive: true });
