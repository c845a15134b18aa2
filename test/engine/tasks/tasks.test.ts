/** The contract of tasks: plain JSON, pure, measured, cancelled together. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CpuDevice } from '../../../cpu/device.ts';
import { RunMetrics } from '../../../engine/metrics.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { Device } from '../../../engine/run/device.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { giveTo, takeFrom, runSteps } from '../../../engine/run/run-steps.ts';
import type { Step } from '../../../engine/run/step.ts';
import type { Task } from '../../../engine/task.ts';
import { openGpuDevice } from '../../../gpu/open-gpu-device.ts';
import { ALS, Session } from '../../../index.ts';
import { isRepeatable } from '../../../api/devices/open-devices.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';

const rows = [...randomRatings(41, 300, 200, 9000), ...randomRatings(42, 300, 200, 300)];

async function train(change: (device: Device) => void) {
  await using session = await Session.create({ workers: 3 });
  change(session.context().executor.devices[0]);
  const model = await new ALS({ rank: 9, maxIter: 3, onDuplicates: 'mean', seed: 4 }).fit(
    session.from(ratingBatches(rows, 500)),
  );
  const [{ user, item }] = rows;
  const lists = [
    model.recommendForUsers([user], 5),
    model.recommendForAllUsers(3, { exclude: session.from(ratingBatches(rows)) }),
    model.similarItems([item], 4),
  ];
  return [
    ...[model.userFactors, model.itemFactors].map((batch) => batch.data.children[1].children[0].values),
    ...(await Promise.all(lists.map((list) => list.toArray()))),
    await model.evaluate(session.from(ratingBatches(rows))),
  ];
}

describe('tasks', () => {
  it('are JSON, and pure: running each twice, from its JSON, gives the same model', async () => {
    const kernels = new Set<string>();
    const twice = await train((device) => {
      const run = device.run.bind(device);
      device.run = async (task, signal) => {
        const copy = JSON.parse(JSON.stringify(task)) as Task;
        expect(copy).toEqual(task);
        kernels.add(task.kernel);
        // Others change their data in place, or add to sums.
        if (isRepeatable(task.kernel)) await run(copy, signal);
        return run(copy, signal);
      };
    });
    expect(twice).toEqual(await train(() => {}));
    expect([...kernels].sort()).toEqual([
      'combine-duplicates',
      'compose-maps',
      'count-columns',
      'count-ids',
      'count-pairs',
      'damped-means',
      'find-duplicates',
      'initialize',
      'keep-known',
      'number-keys',
      'predict',
      'rank-ids',
      'scatter-columns',
      'scatter-pairs',
      'sort-bands',
      'squared-error',
      'sum-ratings',
      'top-n',
      'update',
      'weighted-norm',
    ]);
  });
});

const unknown: Task = { kernel: 'no-such', inputs: {}, outputs: {}, params: {} };

describe.each([
  { kind: 'cpu', open: async () => new CpuDevice({ threads: 2 }), skip: undefined },
  { kind: 'gpu', open: () => openGpuDevice({ robust: true }), skip: noGpu },
])('a $kind device', ({ kind, open, skip }) => {
  let device: Device;
  beforeAll(async () => {
    if (skip === undefined) device = await open();
  });
  afterAll(() => device?.close());

  it.skipIf(skip)('names a task that it cannot do, and an input that it lacks', async () => {
    await expect(device.run(unknown)).rejects.toThrow(
      `no ${kind.toUpperCase()} handler is registered for the task no-such`,
    );
    const lacking: Task = { ...unknown, inputs: { block: { name: 'x', partition: 2, version: 7 } } };
    await expect(device.run(lacking)).rejects.toThrow(
      `input block (x/2@7) is not on device ${device.info.place}`,
    );
  });

  it.skipIf(skip)('gives a matrix back without its padding, and its memory when released', async () => {
    const values = sharedArray(Float32Array, 6);
    values.set([1, 2, 3, 4, 5, 6]);
    for (let version = 0; version < 80; version++) {
      const ref = { name: 'matrix', partition: 0, version };
      device.put(ref, { layout: 'factors', rows: 2, columns: { values } });
      expect((await device.fetch(ref)).columns.values).toEqual(values);
      const large = { ...ref, partition: 1 };
      device.allocate(large, { rows: kind === 'cpu' ? 1_000_000 : 1000, columns: 9, stride: 16 });
      if (version % 40 === 0)
        expect((await device.fetch(large)).columns.values.every((value) => value === 0)).toBe(true);
      device.release(ref);
      device.release(large);
    }
    await expect(device.fetch({ name: 'matrix', partition: 0, version: 3 })).rejects.toThrow('not on device');
    await device.trim();
  });

  it.skipIf(skip)(
    'allocates a vector of any layout but factors in memory that the host reaches',
    async () => {
      const ref = { name: 'bias', partition: 0, version: 0 };
      device.allocate(ref, { layout: 'bias', rows: 3, columns: 1, stride: 1 });
      const { layout, rows, columns } = await device.fetch(ref);
      expect([layout, rows, columns.values]).toEqual(['bias', 3, new Float32Array(3)]);
      expect(columns.values.buffer).toBeInstanceOf(SharedArrayBuffer);
      device.release(ref);
    },
  );
});

describe('a CPU device', () => {
  let device: CpuDevice;
  beforeAll(() => {
    device = new CpuDevice({ threads: 2 });
  });
  afterAll(() => device.close());

  const context = () => ({
    signal: new AbortController().signal,
    executor: new LocalExecutor([device]),
    events: () => {},
    metrics: new RunMetrics(),
  });

  it('refuses a matrix beyond its memory with the bytes it needs and has', () => {
    expect(() =>
      device.allocate(
        { name: 'big', partition: 0, version: 0 },
        { rows: 20_000_000, columns: 64, stride: 64 },
      ),
    ).toThrow(/need 5120000000 bytes, have \d+/);
  });

  it('gives the results of a stage in task order and stops at the first failure', async () => {
    const ref = { name: 'keys', partition: 0, version: 0 };
    const ids = {
      layout: 'key-pairs',
      rows: 3,
      columns: { userValues: Int32Array.of(5, 4, 5), itemValues: Int32Array.of(1, 2, 3) },
    };
    device.put(ref, ids);
    const tasks = Array.from({ length: 20 }, (_, partition): Task => {
      const output = (name: string) => ({ name, partition, version: 0 });
      return {
        kernel: 'number-keys',
        inputs: { ids: ref },
        outputs: { codes: output('codes'), users: output('users'), items: output('items') },
        params: { rows: 3 },
      };
    });
    const ctx = context();
    const finished: number[] = [];
    const steps = (list: readonly Task[]) =>
      list.map((task, id): Step => ({
        id,
        stage: 'numbers',
        at: 'cpu',
        after: [],
        ended: [],
        do: { kind: 'task', task, slices: [{}] },
      }));
    const results = await runSteps(steps(tasks), ctx, { onProgress: (done) => void finished.push(done) });
    expect(results.of('numbers', 'number-keys').length).toBe(20);
    expect(finished).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(ctx.metrics.get('numbers')).toMatchObject({ runs: 20, rows: 60 });
    await expect(runSteps(steps([...tasks, unknown]), ctx)).rejects.toThrow('no-such');
  });

  it('takes partitions that it is given, and gives them back once', async () => {
    const ctx = context();
    const ref = (partition: number) => ({ name: 'given', partition, version: 0 });
    const map = (code: number) => ({ layout: 'map', rows: 1, columns: { map: Uint32Array.of(code) } });
    await giveTo(ctx, 'cpu', [
      [ref(0), map(7)],
      [ref(1), map(8)],
    ]);
    expect(await takeFrom(ctx, 'maps', 'cpu', [ref(1), ref(0)])).toEqual([map(8), map(7)]);
    await expect(takeFrom(ctx, 'maps', 'cpu', [ref(0)])).rejects.toThrow('given/0@0 is not on device cpu');
  });
});

it('the time of lists that run at once counts once', () => {
  const metrics = new RunMetrics();
  for (const [start, end] of [
    [1, 4],
    [2, 6],
    [3, 5],
    [8, 9],
  ])
    metrics.addSpan('lists', start, end);
  expect(metrics.get('lists')?.wallMilliseconds).toBe(6);
});
