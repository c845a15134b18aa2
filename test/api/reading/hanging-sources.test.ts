import type { RecordBatch, Schema } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { ALS } from '../../../api/training/als.ts';
import type { Dataset } from '../../../api/dataset.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { CancelledError } from '../../../engine/errors.ts';
import type { Source } from '../../../engine/stream/operator.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { ratingBatch } from '../../support/ratings.ts';

const session = await cpuSession({ workers: 1 });

const batch = ratingBatch([
  { user: 1, item: 1, rating: 1 },
  { user: 2, item: 1, rating: 3 },
  { user: 2, item: 2, rating: 2 },
]);
const never = () => new Promise<never>(() => {});
const reached: (() => void)[] = [];
const tell = () => reached.splice(0).forEach((resolve) => resolve());

/** A source of the caller's that hangs where `place` says. */
function hanging(place: 'schema' | 'execute' | 'first batch' | 'second batch' | 'end'): Source {
  const hang = async () => {
    tell();
    return never();
  };
  async function* batches(): AsyncGenerator<RecordBatch> {
    if (place === 'first batch') await hang();
    yield batch;
    if (place === 'second batch') await hang();
    try {
      yield batch;
    } finally {
      if (place === 'end') await hang();
    }
  }
  return {
    name: 'hanging',
    replayable: true,
    describe: () => ({}),
    schema: async (): Promise<Schema> => (place === 'schema' ? hang() : batch.schema),
    execute: async () => (place === 'execute' ? hang() : batchStream(batch.schema, batches())),
  };
}

describe('the iterator of a caller is closed by a cancel', () => {
  /** Rows one by one, until the iterator is closed. `after`: called at that row. */
  function trickling(after: number, reached: () => void) {
    const closed = Promise.withResolvers<string>();
    async function* rows() {
      try {
        for (let i = 0; ; i++) {
          if (i === after) reached();
          yield { user: i, item: i % 7, rating: 3 };
          await new Promise((resolve) => setImmediate(resolve));
        }
      } finally {
        closed.resolve('closed');
      }
    }
    return { rows, closed: closed.promise };
  }

  it.each(['once', 'by a function'])('before the first 65,536 rows: %s', async (kind) => {
    const controller = new AbortController();
    const { rows, closed } = trickling(100, () => controller.abort());
    const dataset = session.fromRows(kind === 'once' ? rows() : rows);
    await expect(dataset.count({ signal: controller.signal })).rejects.toBeInstanceOf(CancelledError);
    expect(await closed).toBe('closed');
    if (kind === 'once') await expect(dataset.count()).rejects.toThrow('only once');
  });

  it('in a pass after the columns were found', async () => {
    const controller = new AbortController();
    const { rows, closed } = trickling(65_600, () => controller.abort());
    const dataset = session.fromRows(rows());
    await dataset.schema();
    await expect(dataset.count({ signal: controller.signal })).rejects.toBeInstanceOf(CancelledError);
    expect(await closed).toBe('closed');
  });

  it('where only its columns were found, and where it gave no batch yet', async () => {
    const [found, waiting] = [new AbortController(), new AbortController()];
    let opened = () => {};
    const closed: string[] = [];
    async function* batches(name: string, ready: Promise<void> | undefined) {
      try {
        await ready;
        for (;;) yield batch;
      } finally {
        closed.push(name);
      }
    }
    const first = session.from(batches('found', undefined));
    await first.schema({ signal: found.signal });
    found.abort();
    const ready = new Promise<void>((resolve) => (opened = resolve));
    const counting = session.from(batches('waiting', ready)).count({ signal: waiting.signal });
    waiting.abort();
    await expect(counting).rejects.toBeInstanceOf(CancelledError);
    opened();
    await expect.poll(() => closed).toEqual(['found', 'waiting']);
    await expect(first.count()).rejects.toThrow('only once');
  });
});

describe('a source that hangs', () => {
  it.each(['schema', 'execute', 'first batch', 'second batch', 'end'] as const)(
    'in its %s does not keep a run that is aborted',
    async (place) => {
      const runs: ((source: Dataset, signal: AbortSignal) => Promise<unknown>)[] = [
        (ratings, signal) => new ALS({ rank: 2, maxIter: 2 }).fit(ratings, { signal }),
        (ratings, signal) => ratings.leaveOut(1, { signal }),
        (ratings, signal) => ratings.timeSplit([1, 1], { signal, timestampCol: 'user' }),
      ];
      for (const run of runs) {
        const controller = new AbortController();
        const arrived = new Promise<void>((resolve) => void reached.push(resolve));
        const running = run(session.source(hanging(place)), controller.signal);
        await arrived;
        controller.abort(new Error('enough'));
        await expect(running).rejects.toBeInstanceOf(CancelledError);
      }
    },
  );

  it('when it is left does not keep a run that is aborted', async () => {
    const controller = new AbortController();
    async function* batches() {
      try {
        for (let i = 0; ; i++) {
          yield batch;
          if (i === 3) controller.abort();
        }
      } finally {
        await never();
      }
    }
    const running = new ALS({ rank: 2, maxIter: 2 }).fit(session.from(batches(), batch.schema), {
      signal: controller.signal,
    });
    await expect(running).rejects.toBeInstanceOf(CancelledError);
  });

  it('leaves its session usable', async () => {
    const model = await new ALS({ rank: 2, maxIter: 1 }).fit(session.from([batch]));
    expect(model.rank).toBe(2);
    await model.close();
  });
});
