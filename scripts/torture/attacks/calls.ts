/** Attacks on calls of the API: they are aborted, and their session is closed. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ALS, CancelledError, type Dataset, type Model, Session, SGD, UsageError } from '../../../index.ts';
import { callsOf, CLOSED, opened } from '../../../test/support/mixed-work.ts';
import type { MakeAttack } from '../attack.ts';
import { isLate, ratings } from '../commands.ts';

const ABORTS = 5;
/** A call that goes on for longer after its abort hangs. */
const ABORT_MILLISECONDS = 30_000;
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
  /** Calls with their milliseconds without an abort. */
  const calls: { readonly name: string; readonly run: Call; readonly time: number }[] = [];
  return {
    prepare: async () => {
      session = await Session.create({ device: 'cpu', workers: 2 });
      const data = session.read.parquet(ratings);
      const model = await new ALS({ rank: 4, maxIter: 1 }).fit(data);
      expected = await bitsOfFit(session);
      for (const [name, run] of Object.entries(abortable(data, model, folder))) {
        const started = performance.now();
        await run(new AbortController().signal);
        calls.push({ name, run, time: performance.now() - started });
      }
      return undefined;
    },
    round: async () => {
      for (let left = ABORTS; left > 0; left--) {
        const { name, run, time } = calls[random(calls.length)];
        const moment = random(Math.ceil(time));
        const controller = new AbortController();
        let outcome = 'hangs';
        const running = run(controller.signal).then(
          () => (outcome = 'ended before'),
          (error: unknown) =>
            (outcome = error instanceof CancelledError ? 'cancelled' : `fails: ${textOf(error)}`),
        );
        await pause(moment);
        controller.abort();
        await isLate(running, ABORT_MILLISECONDS);
        const isGood = outcome === 'cancelled' || outcome === 'ended before';
        count(isGood ? outcome : 'found');
        if (!isGood) find(`${name}, aborted after ${moment} ms: ${outcome}`);
      }
      if ((await bitsOfFit(session)) !== expected) find('a fit after aborts gives another model');
      const resident = process.memoryUsage.rss() / 2 ** 20;
      if (resident > MOST_MIB) find(`${resident.toFixed(0)} MiB resident after aborts`);
    },
    close: () => session.close(),
  };
};

/** The calls that are aborted; what they write is in `folder`. */
function abortable(data: Dataset, model: Model, folder: string): Readonly<Record<string, Call>> {
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

/** The item factors of a fit, whose bits are the same each time. */
async function bitsOfFit(session: Session): Promise<string> {
  const fitted = await new ALS({ rank: 4, maxIter: 2, seed: 3 }).fit(session.read.parquet(ratings));
  const bits = Buffer.from(fitted.itemArrays.values.slice().buffer).toString('base64');
  await fitted.close();
  return bits;
}

const SESSIONS = 4;
const CALLS = 10;
const MOST_DELAY_MILLISECONDS = 60;
const MOST_MILLISECONDS = 400;
/** A call, or `close`, that takes longer after the session was asked to close hangs. */
const CLOSING_MILLISECONDS = 60_000;

/**
 * Closes sessions at random moments among calls of every kind: each call succeeds or throws the error that
 * the docs name, has ended when `close` has, and leaves no output that is not whole.
 */
export const closing: MakeAttack = ({ folder, random, count, find }) => {
  const [saved, output] = [join(folder, 'saved'), join(folder, 'output')];
  const written = () => readdirSync(output, { recursive: true }).sort().join(', ');

  async function closeAmongWork(): Promise<void> {
    mkdirSync(output);
    const all = await opened();
    const calls = Object.entries(callsOf(all, saved, output));
    const chosen = Array.from({ length: CALLS }, () => calls.splice(random(calls.length), 1)[0]);
    const running = new Set(chosen.map(([name]) => name));
    const ended = chosen.map(async ([name, call]) => {
      await pause(random(MOST_DELAY_MILLISECONDS));
      const outcome = await call().then(
        () => 'ended before',
        (error: unknown) =>
          error instanceof UsageError && error.message === CLOSED ? 'closed' : textOf(error),
      );
      running.delete(name);
      const isGood = outcome === 'closed' || outcome === 'ended before';
      count(isGood ? outcome : 'found');
      if (!isGood) find(`${name} in a closed session: ${outcome}`);
    });
    await pause(random(MOST_MILLISECONDS));
    const closed = all.session.close();
    if (await isLate(closed, CLOSING_MILLISECONDS))
      return find(`close hangs among ${[...running].join(', ')}`);
    await closed;
    const names = written();
    if (await isLate(Promise.all(ended), CLOSING_MILLISECONDS))
      return find(`in a closed session these hang: ${[...running].join(', ')}`);
    if (written() !== names) find(`after close the output is ${written()}, before ${names}`);
    const left = readdirSync(output).filter((name) => name.startsWith('.'));
    if (left.length > 0) find(`a closed session leaves ${left.join(', ')}`);
    rmSync(output, { recursive: true });
  }

  return {
    prepare: async () => {
      const { session, model } = await opened();
      await model.save(saved);
      await session.close();
      return undefined;
    },
    round: async () => {
      for (let left = SESSIONS; left > 0; left--) await closeAmongWork();
    },
  };
};

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
