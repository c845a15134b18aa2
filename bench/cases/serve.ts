import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { Model, Session } from '../../index.ts';
import type { Case, Row } from '../harness.ts';

const [USERS, RANK] = [20_000, 64];
const WARM_UP = 100;
const kinds = ['trained', 'trained, biases', 'gaussian'] as const;
type Kind = (typeof kinds)[number];

const serve: Case = {
  about:
    "Requests for one user's ten best items at rank 64, with a hundred seen items left out, from a " +
    'loaded model: one after the other, with pauses and at once. Stalls are of the event loop, by a ' +
    "histogram and by a timer of 1 ms. Factors: lengths that fall like a trained model's, with and " +
    'without biases, and Gaussian ones of nearly equal lengths.',
  options: { requests: '2000', items: '100000' },
  columns: { p50: 'ms', p99: 'ms', longest: 'ms', stall: 'ms', "timer's stall": 'ms' },
  rounds: 1,
  async *rows({ options, scratch }): AsyncGenerator<Row> {
    const [requests, items] = [Number(options.requests), Number(options.items)];
    await using session = await Session.create({ device: 'cpu' });
    yield {
      name: 'without requests for 2 s',
      engines: { idle: () => stallsOf(async () => void (await pause(2000))) },
    };
    for (const kind of kinds) {
      const folder = join(scratch, kind);
      await makeModel(session, kind, items).save(folder);
      const opened: Model[] = [];
      const load = async () => {
        const model = await session.loadModel(folder);
        await model.prepare();
        opened.push(model);
      };
      yield { name: `${kind}: load and prepare`, engines: { loadModel: () => stallsOf(load) } };
      const [model] = opened;
      const calls: Readonly<Record<string, Call>> = {
        recommend: async (user, deny) => (await model.recommend(user, 10, { deny })).items.length,
        recommendForUsers: async (user, deny) => {
          let rows = 0;
          for await (const batch of model.recommendForUsers([user], 10, { deny })) rows += batch.numRows;
          return rows;
        },
      };
      for (const paused of [false, true]) {
        const engines = Object.entries(calls).map(([name, call]) => {
          return [name, () => requested(call, { requests, items, paused })] as const;
        });
        yield {
          name: `${kind}, ${paused ? 'with pauses' : 'at once'}`,
          engines: Object.fromEntries(engines),
        };
      }
      await model.close();
    }
  },
};
export default serve;

/** Recommends to a user without these items; returns the length of the list. */
type Call = (user: number, deny: readonly number[]) => Promise<number>;

/** The longest stalls of the event loop during some work. */
async function stallsOf(work: () => Promise<void>) {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  let [last, longest] = [performance.now(), 0];
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 1);
    last = now;
  }, 1);
  histogram.enable();
  await work();
  histogram.disable();
  clearInterval(timer);
  return { stall: histogram.max / 1e6 - 1, "timer's stall": longest };
}

async function requested(
  call: Call,
  {
    requests,
    items,
    paused,
  }: { readonly requests: number; readonly items: number; readonly paused: boolean },
) {
  const times: number[] = [];
  const draw = (count: number) => 3 * Math.floor(Math.random() * count) + 1;
  const ask = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const [user, deny] = [draw(USERS), Array.from({ length: 100 }, () => draw(items))];
      const start = performance.now();
      if ((await call(user, deny)) !== 10) throw new Error('a list is short');
      times.push(performance.now() - start);
      if (paused || i % 16 === 0) await pause(1);
    }
  };
  await ask(WARM_UP);
  times.length = 0;
  const stalls = await stallsOf(() => ask(requests));
  times.sort((left, right) => left - right);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
  return { p50: at(0.5), p99: at(0.99), longest: at(1), ...stalls };
}

function makeModel(session: Session, kind: Kind, items: number): Model {
  const biases = kind === 'trained, biases';
  const keys = (count: number) =>
    ({ type: 'int32', values: Int32Array.from({ length: count }, (_, i) => 3 * i + 1) }) as const;
  return new Model({
    rank: RANK + (biases ? 2 : 0),
    users: keys(USERS),
    items: keys(items),
    userFactors: factors(kind, 'user', USERS),
    itemFactors: factors(kind, 'item', items),
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session,
    metadata: { params: { biases } },
  });
}

/**
 * Rows with Gaussian directions; rows like a trained model's have lengths of 0.05 to 1, by popularity. Biases
 * are two additional features.
 */
function factors(kind: Kind, side: 'user' | 'item', rows: number): Float32Array {
  const width = RANK + (kind === 'trained, biases' ? 2 : 0);
  const values = new Float32Array(new SharedArrayBuffer(4 * rows * width));
  for (let row = 0; row < rows; row++) {
    const length = kind === 'gaussian' || side === 'user' ? 1 : Math.exp(-3 * Math.random());
    for (let k = 0; k < RANK; k++) values[row * width + k] = (length * gaussian()) / Math.sqrt(RANK);
    if (width === RANK) continue;
    values[row * width + RANK] = side === 'user' ? 3.5 + 0.3 * gaussian() : 1;
    values[row * width + RANK + 1] = side === 'user' ? 1 : 0.3 * gaussian();
  }
  return values;
}

function gaussian(): number {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}
