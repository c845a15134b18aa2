import type { RecordBatch } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import {
  ALS,
  type AlsOptions,
  CapacityError,
  DataError,
  type ProgressEvent,
  Session,
  type SessionOptions,
  SGD,
  UsageError,
} from '../../index.ts';
import { parseSize } from '../../api/sizes.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const rows = randomRatings(31, 200, 100, 4000);

async function* stream(): AsyncGenerator<RecordBatch> {
  yield* ratingBatches(rows, 100);
}

describe('a session', () => {
  it.each([
    [{ device: 'tpu' }, 'device must be auto, cpu, gpu or GPUs by number such as gpu:0,1, got "tpu"'],
    [{ fakeDevices: 0 }, 'fakeDevices must be a whole number from 1 to 16, got 0'],
    [{ device: 'gpu:0', fakeDevices: 2 }, 'fakeDevices cannot be used with device gpu:0'],
    [{ device: 'cpu', deviceMemory: '8GiB' }, 'deviceMemory cannot be used with device cpu'],
    [{ workers: 0 }, 'workers must be a whole number from 1 to 256, got 0'],
    [{ memoryBudget: 'lots' }, 'memoryBudget must be a size such as 4GiB or 500MB, got lots'],
    [{ wrokers: 2 }, 'unknown session option wrokers'],
    [{ profile: true }, 'profile must be a Profile, got true'],
    [null, "Session.create takes options such as { device: 'gpu' }, got null"],
    ['gpu', 'Session.create takes options'],
  ])('refuses %o', async (options, message) => {
    await expect(Session.create(options as SessionOptions)).rejects.toThrow(message);
    await expect(Session.create(options as SessionOptions)).rejects.toBeInstanceOf(UsageError);
  });

  it('without devices reads and writes rows, and names the missing devices for other work', async () => {
    await using session = Session.withoutDevices();
    const dataset = session.from(ratingBatches(rows, 100));
    expect(await dataset.count()).toBe(rows.length);
    const training = new ALS({ rank: 2 }).fit(dataset);
    await expect(training).rejects.toBeInstanceOf(UsageError);
    await expect(training).rejects.toThrow(
      'this session has no devices. Open one that computes with Session.create()',
    );
  });

  it('has readers that work without their object', async () => {
    await using session = Session.withoutDevices();
    const { parquet, csv, text, ndjson, arrow, any } = session.read;
    for (const read of [parquet, csv, text, ndjson, arrow, any]) {
      const opened = (async () => (await read('missing/file.csv')).schema())();
      await expect(opened).rejects.toThrow(/missing/);
    }
  });

  it('reads sizes in binary and decimal units', () => {
    expect([
      parseSize('4GiB', 'x'),
      parseSize('500MB', 'x'),
      parseSize('1.5g', 'x'),
      parseSize(7, 'x'),
    ]).toEqual([4 * 2 ** 30, 500e6, 1.5 * 2 ** 30, 7]);
  });

  it('trains on any async iterable of batches, once', async () => {
    const session = await cpuSession();
    const dataset = session.from(stream());
    const model = await new ALS({ rank: 3, maxIter: 2 }).fit(dataset);
    expect(model.userCount).toBe(new Set(rows.map((row) => row.user)).size);
    await expect(new ALS({ rank: 3 }).fit(dataset)).rejects.toThrow('can be read only once');
  });

  it('reports phases and iterations during a run', async () => {
    const session = await cpuSession();
    const events: ProgressEvent[] = [];
    await new ALS({ rank: 3, maxIter: 3 }).fit(session.from(stream()), {
      onEvent: (event) => void events.push(event),
    });
    expect(events.filter((event) => event.type === 'phase-start').map((event) => event.phase)).toEqual([
      'read',
      'sort',
      'train',
    ]);
    expect(events.filter((event) => event.type === 'phase-end').length).toBe(3);
    expect(events.filter((event) => event.type === 'iteration').map((event) => event.iteration)).toEqual([
      1, 2, 3,
    ]);
    const progress = events
      .filter((event) => event.type === 'phase-progress' && event.phase === 'train')
      .map((event) => (event as { done: number }).done);
    expect([...progress].sort((left, right) => left - right)).toEqual(progress);
    expect(progress.at(-1)).toBe(3);
  });

  it('refuses ratings beyond the memory budget, before it allocates factors', async () => {
    await using session = await Session.create({ workers: 1, memoryBudget: '220MiB' });
    const refused = new ALS({ rank: 2 }).fit(session.from(randomBatches(600_000)));
    await expect(refused).rejects.toBeInstanceOf(CapacityError);
    await expect(refused).rejects.toThrow(/the run needs about .* Raise memoryBudget to [\d.]+ MiB or more/);
    await expect(new SGD({ rank: 2 }).fit(session.from(randomBatches(600_000)))).rejects.toThrow(
      /more than [\d,]+ ratings do not fit/,
    );
  });

  it('names errors in the data', async () => {
    const session = await cpuSession();
    const empty = new ALS().fit(session.from([], ratingBatches(rows)[0].schema));
    await expect(empty).rejects.toBeInstanceOf(DataError);
    await expect(empty).rejects.toThrow('no ratings are left');
    await expect(new ALS({ userCol: 'userId' }).fit(session.from(ratingBatches(rows)))).rejects.toThrow(
      'there is no column "userId"; there are: user (Int32), item (Int32), rating (Float32)',
    );
  });
});

describe('ALS parameters', () => {
  it.each<[object, string]>([
    [{ rank: 0 }, 'rank must be a whole number from 1 to 4,096, got 0'],
    [{ maxIter: 0 }, 'maxIter must be'],
    [{ regParam: -0.1 }, 'regParam (λ) must be auto or a number of 0 or more, got -0.1'],
    [{ regParam: Number.NaN }, 'regParam'],
    [{ seed: -1 }, 'seed must be'],
    [{ solver: 'lu' }, 'solver must be auto, cholesky or cg, got "lu"'],
    [{ cgSteps: 0 }, 'cgSteps must be'],
    [{ targetRmse: -1 }, 'targetRmse must be'],
    [{ earlyStop: 0 }, 'earlyStop must be'],
    [{ onDuplicates: 'first' }, 'onDuplicates must be one of keep, error, last, mean, sum, got "first"'],
    [{ onBadRows: 'no' }, 'onBadRows must be one of'],
    [{ coldStartStrategy: 'zero' }, 'coldStartStrategy must be one of'],
    [{ implicit: true }, 'unknown ALS parameter implicit. Did you mean implicitPrefs? There are: rank, '],
    [{ ranks: 10 }, 'Did you mean rank?'],
    [{ ratingsCol: 'stars' }, 'Did you mean ratingCol?'],
    [{ timestampCol: 't' }, "timestampCol acts only with halfLife, or with onDuplicates 'last'"],
  ])('refuse %o', (options, message) => {
    expect(() => new ALS(options as AlsOptions)).toThrow(message);
    expect(() => new ALS(options as AlsOptions)).toThrow(UsageError);
  });

  it('are good by default, with biases and without: docs/measured/quality.md', () => {
    expect(new ALS().params).toMatchObject({
      rank: 10,
      maxIter: 10,
      biases: true,
      regParam: 0.02,
      regOffset: 10,
      biasDamping: [3, 5],
      start: 'level',
    });
    expect(new ALS({ biases: false }).params).toMatchObject({
      biases: false,
      regParam: 0.1,
      regOffset: 0,
      start: 'level',
    });
    expect(new ALS({ implicitPrefs: true }).params).toMatchObject({
      biases: false,
      regParam: 'auto',
      alpha: 'auto',
      weight: 'auto',
      regExponent: 0.75,
      regOffset: 0,
      start: 'spark',
    });
    expect(new ALS({ implicitPrefs: true, unobservedWeight: 0.1 }).params).toMatchObject({
      regParam: 0.003,
      alpha: 1,
      weight: 'auto',
      regExponent: 1,
    });
    expect(new SGD().params).toMatchObject({
      biases: true,
      regParam: 0.02,
      regOffset: 10,
      biasDamping: [3, 5],
    });
    expect(() => new ALS({ biases: false, biasDamping: 3 })).toThrow(
      'biasDamping has no effect without biases',
    );
  });

  it("are Spark ML's with ALS.spark", () => {
    const { params, columns, coldStartStrategy } = ALS.spark({ rank: 12 });
    expect(params).toMatchObject({
      rank: 12,
      maxIter: 10,
      regParam: 0.1,
      biases: false,
      regOffset: 0,
      start: 'spark',
      implicitPrefs: false,
      nonnegative: false,
    });
    expect(ALS.spark({ implicitPrefs: true }).params).toMatchObject({
      regParam: 0.1,
      alpha: 1,
      weight: 'spark',
      regExponent: 1,
      start: 'spark',
      biases: false,
      regOffset: 0,
    });
    const solverOf = (options: AlsOptions) => ALS.spark(options).params.solver;
    expect([{}, { rank: 64 }, { implicitPrefs: true }].map(solverOf)).toEqual(Array(3).fill('cholesky'));
    const others: AlsOptions[] = [
      { rank: 65 },
      { cgSteps: 3 },
      { partitionSums: 'vectors' },
      { solver: 'auto' },
    ];
    expect(others.map(solverOf)).toEqual(Array(4).fill('auto'));
    expect(columns).toMatchObject({ user: 'user', item: 'item', rating: 'rating' });
    expect(coldStartStrategy).toBe('nan');
  });
});

/** `count` ratings, each of another user, batch by batch. */
async function* randomBatches(count: number): AsyncGenerator<RecordBatch> {
  for (let from = 0; from < count; from += 20_000)
    yield* ratingBatches(
      Array.from({ length: 20_000 }, (_, i) => ({ user: from + i, item: i % 100, rating: 3 })),
      20_000,
    );
}
