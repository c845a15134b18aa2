import type { RecordBatch, Schema } from 'apache-arrow';
import { afterAll, describe, expect, it } from 'vitest';
import { ALS } from '../../../api/training/als.ts';
import type { Dataset } from '../../../api/dataset.ts';
import { Session } from '../../../api/session.ts';
import { CancelledError } from '../../../engine/errors.ts';
import type { Source } from '../../../engine/stream/operator.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { ratingBatch } from '../../support/ratings.ts';

const session = await Session.create({ device: 'cpu', workers: 1 });
afterAll(() => session.close());

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
