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

interface Call {
  readonly name: string;
  /** Milliseconds without an abort. */
  time: number;
  run(signal: AbortSignal): Promise<unknown>;
}

/**
 * Aborts calls of the API at random moments: each throws CancelledError or succeeds, and the session goes on
 * as before.
 */
export const aborts: MakeAttack = ({ folder, random, count, find }) => {
  let session: Session;
  let model: Model;
  let expected = '';
  let calls: Call[] = [];
  const control = async () => {
    const fitted = await new ALS({ rank: 4, maxIter: 2, seed: 3 }).fit(session.read.parquet(ratings));
    const bits = Buffer.from(fitted.itemArrays.values.slice().buffer).toString('base64');
    await fitted.close();
    return bits;
  };
  return {
    name: 'aborts',
    prepare: async () => {
      session = await Session.create({ device: 'cpu', workers: 2 });
      const data: Dataset = session.read.parquet(ratings);
      model = await new ALS({ rank: 4, maxIter: 1 }).fit(data);
      expected = await control();
      const closed = async (fitted: Promise<Model>) => (await fitted).close();
      calls = [
        {
          name: 'ALS.fit',
          time: 0,
          run: (signal) => closed(new ALS({ rank: 8, maxIter: 6 }).fit(data, { signal })),
        },
        {
          name: 'ALS.fit, implicit',
          time: 0,
          run: (signal) =>
            closed(new ALS({ rank: 4, maxIter: 2, implicitPrefs: true }).fit(data, { signal })),
        },
        {
          name: 'SGD.fit',
          time: 0,
          run: (signal) => closed(new SGD({ rank: 8, maxIter: 4 }).fit(data, { signal })),
        },
        { name: 'evaluate', time: 0, run: (signal) => model.evaluate(data, { signal }) },
        { name: 'foldIn', time: 0, run: (signal) => model.foldIn(data, { signal }) },
        { name: 'update', time: 0, run: (signal) => closed(model.update(data, { signal })) },
        { name: 'leaveOut', time: 0, run: (signal) => data.leaveOut(1, { signal }) },
        {
          name: 'recommendForAllUsers',
          time: 0,
          run: (signal) =>
            model.recommendForAllUsers(3).write.parquet(join(folder, 'lists'), { signal, overwrite: true }),
        },
        {
          name: 'write.csv',
          time: 0,
          run: (signal) => data.write.csv(join(folder, 'rows.csv.gz'), { signal, overwrite: true }),
        },
        {
          name: 'save',
          time: 0,
          run: (signal) => model.save(join(folder, 'model'), { signal, overwrite: true }),
        },
      ];
      for (const call of calls) {
        const started = performance.now();
        await call.run(new AbortController().signal);
        call.time = performance.now() - started;
      }
      return undefined;
    },
    round: async () => {
      for (let left = ABORTS; left > 0; left--) {
        const call = calls[random(calls.length)];
        const controller = new AbortController();
        const moment = random(Math.ceil(call.time));
        const running = call.run(controller.signal).then(
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
        count(outcome === 'cancelled' || outcome === 'ended before' ? outcome : 'found');
        if (outcome !== 'cancelled' && outcome !== 'ended before')
          find(`${call.name}, aborted after ${moment} ms: ${outcome}`);
      }
      if ((await control()) !== expected) find('a fit after aborts gives another model');
      const resident = process.memoryUsage.rss() / 2 ** 20;
      if (resident > MOST_MIB) find(`${resident.toFixed(0)} MiB resident after aborts`);
    },
    close: async () => {
      await session.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
