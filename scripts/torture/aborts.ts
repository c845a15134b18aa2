import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ALS, CancelledError, type Dataset, type Model, Session, SGD } from '../../index.ts';
import type { MakeAttack } from './attack.ts';
import { ratings } from './commands.ts';

const ABORTS = 5;
/** A call that goes on for longer after its abort hangs. */
const PATIENCE_MILLISECONDS = 30_000;
/** Resident MiB of this process, in which all calls run. */
const MOST_MIB = 2500;

type Call = (signal: AbortSignal) => Promise<unknown>;

/**
 * Aborts calls of the API at random moments: each throws CancelledError or succeeds, and the session goes on
 * as before.
 */
export const aborts: MakeAttack = ({ folder, random, count, find }) => {
  let session: Session;
  let expected = '';
  let calls: TimedCall[] = [];
  return {
    name: 'aborts',
    prepare: async () => {
      session = await Session.create({ device: 'cpu', workers: 2 });
      const data = session.read.parquet(ratings);
      const model = await new ALS({ rank: 4, maxIter: 1 }).fit(data);
      expected = await bitsOfFit(session);
      calls = await timed(callsOf(data, model, folder));
      return undefined;
    },
    round: async () => {
      for (let left = ABORTS; left > 0; left--) {
        const { name, run, time } = calls[random(calls.length)];
        const moment = random(Math.ceil(time));
        const outcome = await abortedAfter(moment, run);
        const isGood = outcome === 'cancelled' || outcome === 'ended before';
        count(isGood ? outcome : 'found');
        if (!isGood) find(`${name}, aborted after ${moment} ms: ${outcome}`);
      }
      if ((await bitsOfFit(session)) !== expected) find('a fit after aborts gives another model');
      const resident = process.memoryUsage.rss() / 2 ** 20;
      if (resident > MOST_MIB) find(`${resident.toFixed(0)} MiB resident after aborts`);
    },
    close: async () => {
      await session.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** The calls that are aborted; what they write is in `folder`. */
function callsOf(data: Dataset, model: Model, folder: string): Readonly<Record<string, Call>> {
  const closed = async (fitted: Promise<Model>) => (await fitted).close();
  const to = (name: string, signal: AbortSignal) =>
    [join(folder, name), { signal, overwrite: true }] as const;
  return {
    'ALS.fit': (signal) => closed(new ALS({ rank: 8, maxIter: 6 }).fit(data, { signal })),
    'ALS.fit, implicit': (signal) =>
      closed(new ALS({ rank: 4, maxIter: 2, implicitPrefs: true }).fit(data, { signal })),
    'SGD.fit': (signal) => closed(new SGD({ rank: 8, maxIter: 4 }).fit(data, { signal })),
    evaluate: (signal) => model.evaluate(data, { signal }),
    foldIn: (signal) => model.foldIn(data, { signal }),
    update: (signal) => closed(model.update(data, { signal })),
    leaveOut: (signal) => data.leaveOut(1, { signal }),
    recommendForAllUsers: (signal) => model.recommendForAllUsers(3).write.parquet(...to('lists', signal)),
    'write.csv': (signal) => data.write.csv(...to('rows.csv.gz', signal)),
    save: (signal) => model.save(...to('model', signal)),
  };
}

interface TimedCall {
  readonly name: string;
  readonly run: Call;
  /** Milliseconds without an abort. */
  readonly time: number;
}

async function timed(calls: Readonly<Record<string, Call>>): Promise<TimedCall[]> {
  const list: TimedCall[] = [];
  for (const [name, run] of Object.entries(calls)) {
    const started = performance.now();
    await run(new AbortController().signal);
    list.push({ name, run, time: performance.now() - started });
  }
  return list;
}

/** Outcome of a call that is aborted after `moment` milliseconds: cancelled, ended before, or a failure. */
async function abortedAfter(moment: number, run: Call): Promise<string> {
  const controller = new AbortController();
  const running = run(controller.signal).then(
    () => 'ended before',
    (error: unknown) =>
      error instanceof CancelledError
        ? 'cancelled'
        : `fails: ${error instanceof Error ? error.stack : String(error)}`,
  );
  await pause(moment);
  controller.abort();
  const stop = new AbortController();
  const outcome = await Promise.race([
    running,
    pause(PATIENCE_MILLISECONDS, 'hangs', { signal: stop.signal }).catch(() => 'stopped'),
  ]);
  stop.abort();
  return outcome;
}

/** The item factors of a fit, whose bits are the same each time. */
async function bitsOfFit(session: Session): Promise<string> {
  const fitted = await new ALS({ rank: 4, maxIter: 2, seed: 3 }).fit(session.read.parquet(ratings));
  const bits = Buffer.from(fitted.itemArrays.values.slice().buffer).toString('base64');
  await fitted.close();
  return bits;
}
