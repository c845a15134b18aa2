import type { RecordBatch } from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ALS,
  type AlsOptions,
  DivergedError,
  type FitOptions,
  type Model,
  Session,
  SGD,
  UsageError,
} from '../../index.ts';
import { type PartitionRef, partitionKey } from '../../engine/partition.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { batchOf, randomRatings, ratingBatches, type Triple } from '../support/ratings.ts';

const rows = randomRatings(5, 300, 200, 8000);
const batches = ratingBatches(rows, 500);

let session: Session;
/** The partitions on the device. */
const held = new Set<string>();

beforeAll(async () => {
  session = await Session.create({ workers: 2 });
  const [device] = session.context().executor.devices;
  const { put, allocate, release } = device;
  device.put = (ref: PartitionRef, partition) => {
    held.add(partitionKey(ref));
    return put.call(device, ref, partition);
  };
  device.allocate = (ref: PartitionRef, shape) => {
    held.add(partitionKey(ref));
    return allocate.call(device, ref, shape);
  };
  device.release = (ref: PartitionRef) => {
    release.call(device, ref);
    held.delete(partitionKey(ref));
  };
});
afterAll(() => session.close());

async function* failing(count: number): AsyncGenerator<RecordBatch> {
  for (let i = 0; i < count; i++) yield batches[i % batches.length];
  throw new Error('the source broke');
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

const factors = ({ userFactors }: Model) =>
  Array.from(userFactors.data.children[1].children[0].values as Float32Array);

const fit = (options: AlsOptions = {}, more: FitOptions = {}): Promise<Model> =>
  new ALS({ rank: 4, maxIter: 2, ...options }).fit(session.from(batches), {
    validation: session.from(batches.slice(0, 3)),
    ...more,
  });

describe('nothing stays on the device', () => {
  it('after a run that ends well', async () => {
    const model = await fit({ onDuplicates: 'mean', biases: true });
    await drain(model.recommendForAllUsers(3, { exclude: session.from(batches) }));
    await drain(model.predict(session.from(batches)));
    await model.evaluate(session.from(batches));
    expect([...held]).toEqual([]);
  });

  it('after SGD that ends well, is updated, diverges or breaks', async () => {
    for (const schedule of ['wavefront', 'blocks'] as const) {
      const sgd = new SGD({ rank: 4, maxIter: 3, schedule, rate: 'adagrad', biases: true, earlyStop: 1 });
      const model = await sgd.fit(session.from(batches), { validation: session.from(batches.slice(0, 3)) });
      await model.update(session.from(batches.slice(0, 4)), { maxIter: 2 });
      await expect(sgd.fit(session.from(failing(40)))).rejects.toThrow('the source broke');
      await expect(
        new SGD({ rank: 4, learningRate: 1e6, schedule }).fit(session.from(batches)),
      ).rejects.toThrow(DivergedError);
    }
    expect([...held]).toEqual([]);
  });

  it('after a source that breaks, in training and elsewhere', async () => {
    const als = new ALS({ rank: 4, maxIter: 2 });
    const model = await fit();
    await expect(als.fit(session.from(failing(40)))).rejects.toThrow('the source broke');
    await expect(fit({}, { validation: session.from(failing(3)) })).rejects.toThrow('the source broke');
    await expect(drain(model.recommendForAllUsers(3, { exclude: session.from(failing(2)) }))).rejects.toThrow(
      'the source broke',
    );
    await expect(drain(model.predict(session.from(failing(2))))).rejects.toThrow('the source broke');
    await expect(model.evaluate(session.from(failing(2)))).rejects.toThrow('the source broke');
    expect([...held]).toEqual([]);
  });

  it('after a listener that throws, or a cancellation, at any event', async () => {
    const kinds = new Set<string>();
    const kindOf = (event: { type: string; phase?: string }) => `${event.type} ${event.phase ?? ''}`;
    await fit({}, { onEvent: (event) => void kinds.add(kindOf(event)) });
    expect(kinds.size).toBeGreaterThan(6);
    for (const kind of kinds) {
      const onEvent =
        (act: () => void): FitOptions['onEvent'] =>
        (event) =>
          void (kindOf(event) === kind && act());
      await expect(
        fit(
          {},
          {
            onEvent: onEvent(() => {
              throw new Error('the listener broke');
            }),
          },
        ),
        kind,
      ).rejects.toThrow('the listener broke');
      const controller = new AbortController();
      await fit(
        { onDuplicates: 'mean' },
        { signal: controller.signal, onEvent: onEvent(() => controller.abort()) },
      ).catch(() => undefined);
      expect([...held], kind).toEqual([]);
    }
    const model = await fit();
    const onEvent = () => {
      throw new Error('the listener broke');
    };
    await expect(model.evaluate(session.from(batches), { onEvent })).rejects.toThrow('the listener broke');
    await expect(
      (async () => drain(await model.recommendForAllUsers(3).stream({ onEvent })))(),
    ).rejects.toThrow('the listener broke');
    expect([...held]).toEqual([]);
  });

  it('after duplicates that are errors', async () => {
    await expect(
      new ALS({ onDuplicates: 'error' }).fit(session.from([...batches, batches[0]])),
    ).rejects.toThrow('repeat an earlier');
    expect([...held]).toEqual([]);
  });
});

describe('a session that is closed', () => {
  it('refuses later work, and starts no threads again', async () => {
    const closed = await Session.create({ workers: 2 });
    const model = await new ALS({ rank: 2, maxIter: 1 }).fit(closed.from(batches));
    await closed.close();
    await closed.close();
    await expect(new ALS().fit(closed.from(batches))).rejects.toThrow('the session is closed');
    await expect(closed.loadModel('anywhere')).rejects.toThrow('the session is closed');
    await expect(drain(model.predict(closed.from(batches)))).rejects.toBeInstanceOf(UsageError);
  });

  it.skipIf(noGpu)('ends what still runs on a GPU in the same way', async () => {
    const closed = await Session.create({ device: 'gpu', workers: 1 });
    const running = new ALS({ rank: 8, maxIter: 10_000 }).fit(closed.from(batches), {
      onEvent: (event) => void (event.type === 'iteration' && closed.close()),
    });
    await expect(running).rejects.toThrow('the session is closed');
  });
});

it('runs of one session at the same time do not see each other', async () => {
  const alone = await fit();
  const together = await Promise.all([fit(), fit({ rank: 7 }), fit({ biases: true }), fit()]);
  for (const model of [together[0], together[3]]) expect(factors(model)).toEqual(factors(alone));
});

it('a validation set needs no times for any policy for duplicates', async () => {
  const column = (of: (row: Triple) => number, type: 'int32' | 'float32') => ({ type, values: rows.map(of) });
  const pairs = {
    user: column((row) => row.user, 'int32'),
    item: column((row) => row.item, 'int32'),
    rating: column((row) => row.rating, 'float32'),
  };
  const timed = batchOf({ ...pairs, timestamp: column((row) => row.rating, 'int32') });
  const model = await new ALS({ rank: 2, maxIter: 1, onDuplicates: 'last' }).fit(session.from([timed]), {
    validation: session.from([batchOf(pairs)]),
  });
  expect(model.training?.testPairs).toBe(rows.length);
});
