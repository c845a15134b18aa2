/**
 * A fit that fails or is cancelled at any of its tasks, from the first one that reads to the last one that
 * measures. After the error no task continues, and no partition remains on a device or in host memory.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeptForms } from '../../../operators/ratings/kept-forms.ts';
import { CancelledError } from '../../../engine/errors.ts';
import { type PartitionRef, partitionKey } from '../../../engine/partition.ts';
import type { Device, Executor } from '../../../engine/run/device.ts';
import type { Task } from '../../../engine/task.ts';
import { everyNth } from '../../support/deep.ts';
import { ALS, type Dataset, Session, SGD } from '../../../index.ts';

let session: Session;
beforeAll(async () => void (session = await Session.create({ device: 'cpu', workers: 2 })));
afterAll(() => session.close());

const rows = [0, 1, 2].flatMap((user) => [0, 1].map((item) => ({ user, item, rating: user + item + 1 })));

/** Counts tasks, and records which tasks are running and which partitions are held. */
class Watched {
  tasks = 0;
  running = 0;
  readonly held = new Set<string>();
  /** Called at the beginning of each task with its number, from 1. */
  onTask: (number: number) => void = () => {};

  device(device: Device): Device {
    const hold = (ref: PartitionRef) => void this.held.add(`${device.info.place} ${partitionKey(ref)}`);
    const watched: Partial<Device> = {
      put: (ref, partition) => {
        device.put(ref, partition);
        hold(ref);
      },
      allocate: (ref, shape) => {
        device.allocate(ref, shape);
        hold(ref);
      },
      run: async (task: Task, signal) => {
        this.onTask(++this.tasks);
        this.running++;
        for (const ref of Object.values(task.outputs)) hold(ref);
        try {
          return await device.run(task, signal);
        } finally {
          this.running--;
        }
      },
      release: (ref) => {
        device.release(ref);
        this.held.delete(`${device.info.place} ${partitionKey(ref)}`);
      },
    };
    return new Proxy(device, {
      get: (target, name) => {
        const own = watched[name as keyof Device] ?? Reflect.get(target, name, target);
        return typeof own === 'function' && !(name in watched) ? own.bind(target) : own;
      },
    });
  }
}

/** Fits on watched devices. */
async function fitWatched(
  estimator: ALS | SGD,
  onTask: (number: number) => void,
  signal?: AbortSignal,
): Promise<{ readonly watched: Watched; readonly error: unknown }> {
  const watched = new Watched();
  watched.onTask = onTask;
  const context = session.context.bind(session);
  session.context = (options) => {
    const ctx = context(options);
    const devices = ctx.executor.devices.map((device) => watched.device(device));
    const executor: Executor = new Proxy(ctx.executor, {
      get: (target, name) => (name === 'devices' ? devices : Reflect.get(target, name, target)),
    });
    return { ...ctx, executor };
  };
  const [train, validation]: Dataset[] = [session.fromRows(rows), session.fromRows(rows.slice(0, 2))];
  try {
    await estimator.fit(train, { validation, signal });
    return { watched, error: undefined };
  } catch (error) {
    return { watched, error };
  } finally {
    session.context = context;
  }
}

it('ratings that a cancelled fit was loading are loaded again by the fits that waited for them', async () => {
  const kept = new KeptForms(3);
  const gate = Promise.withResolvers<string>();
  const cancelled = kept.load('blocks', () => gate.promise);
  const waiting = kept.load('blocks', async () => 'loaded again');
  const third = kept.load('blocks', () => expect.unreachable());
  gate.reject(new CancelledError());
  await expect(cancelled).rejects.toBeInstanceOf(CancelledError);
  expect([await waiting, await third]).toEqual(['loaded again', 'loaded again']);
});

describe.each([
  ['als', () => new ALS({ rank: 2, maxIter: 2, seed: 1 })],
  ['als-implicit', () => new ALS({ rank: 2, maxIter: 2, seed: 1, implicitPrefs: true })],
  ['sgd', () => new SGD({ rank: 2, maxIter: 2, seed: 1 })],
] as const)('%s', (_, estimator) => {
  it('leaves nothing when it succeeds, fails at each of its tasks, or is cancelled there', async () => {
    const whole = await fitWatched(estimator(), () => {});
    expect(whole.error).toBeUndefined();
    expect([...whole.watched.held]).toEqual([]);
    const { tasks } = whole.watched;
    expect(tasks).toBeGreaterThan(30);
    for (const at of everyNth(
      Array.from({ length: tasks }, (_, task) => task + 1),
      3,
      tasks - 1,
    )) {
      const failed = await fitWatched(estimator(), (number) => {
        if (number === at) throw new Error(`task ${at}`);
      });
      // A failed speculation would not fail the run, but on a CPU no task is speculative.
      expect(String(failed.error)).toContain(`task ${at}`);
      expect([failed.watched.running, [...failed.watched.held]], `failed at ${at}`).toEqual([0, []]);
      const cancel = new AbortController();
      const ended = await fitWatched(
        estimator(),
        (number) => {
          if (number === at) cancel.abort();
        },
        cancel.signal,
      );
      // The last tasks may end before the run sees it.
      if (ended.error !== undefined) expect(ended.error).toBeInstanceOf(CancelledError);
      else expect(at).toBeGreaterThan(tasks - 5);
      expect([ended.watched.running, [...ended.watched.held]], `cancelled at ${at}`).toEqual([0, []]);
    }
  });
});
