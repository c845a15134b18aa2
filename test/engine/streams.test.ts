import type { RecordBatch } from 'apache-arrow';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { iterableSource } from '../../connectors/iterable-source.ts';
import { CancelledError } from '../../engine/errors.ts';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import { andThen, executePlan, fromSource } from '../../engine/stream/logical-plan.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import { collectGarbage } from '../../engine/threads/collect-garbage.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import { ratingBatch } from '../support/ratings.ts';

const executor = new LocalExecutor([]);

function context(signal = new AbortController().signal): ExecutionContext {
  return { signal, executor, events: () => {}, metrics: new RunMetrics() };
}

/** An endless source that counts what is pulled and whether it was closed. */
function counted() {
  const state = { pulled: 0, closed: false };
  async function* batches(): AsyncGenerator<RecordBatch> {
    try {
      for (;;) {
        state.pulled++;
        yield ratingBatch([{ user: state.pulled, item: 1, rating: 1 }]);
      }
    } finally {
      state.closed = true;
    }
  }
  return { state, source: iterableSource(batches()) };
}

describe('a stream', () => {
  const select = new SelectRatings({ user: 'user', item: 'item', rating: 'rating' });

  it('holds no batch of its source that its consumer is done with', async () => {
    const given: WeakRef<RecordBatch>[] = [];
    async function* batches(): AsyncGenerator<RecordBatch> {
      for (let user = 0; user < 50; user++) {
        const batch = ratingBatch([{ user, item: 1, rating: 1 }]);
        given.push(new WeakRef(batch));
        yield batch;
        // A WeakRef keeps its target until the turn of the event loop in which it was made has ended.
        await setImmediate();
      }
    }
    let left = 0;
    for await (const _ of await executePlan(
      andThen(fromSource(iterableSource(batches())), select),
      context(),
    )) {
      if (given.length < 50) continue;
      collectGarbage();
      left = given.filter((batch) => batch.deref() !== undefined).length;
    }
    expect(left).toBeLessThan(5);
  });

  it('pulls no more batches than its consumer asks for, and closes its source when left early', async () => {
    const { state, source } = counted();
    let seen = 0;
    for await (const batch of await executePlan(andThen(fromSource(source), select), context())) {
      seen += batch.numRows;
      if (seen === 3) break;
    }
    expect(state.pulled).toBeLessThanOrEqual(4);
    expect(state.closed).toBe(true);
  });

  it('ends with CancelledError once the signal fires, and closes its source', async () => {
    const { state, source } = counted();
    const controller = new AbortController();
    const pull = async () => {
      let seen = 0;
      for await (const _ of await executePlan(
        andThen(fromSource(source), select),
        context(controller.signal),
      ))
        if (++seen === 5) controller.abort();
    };
    await expect(pull()).rejects.toBeInstanceOf(CancelledError);
    expect(state.pulled).toBeLessThan(10);
    expect(state.closed).toBe(true);
  });

  it('meters rows of every operator', async () => {
    const ctx = context();
    const batches = [
      ratingBatch([{ user: 1, item: 1, rating: 1 }]),
      ratingBatch([{ user: 2, item: 1, rating: 1 }]),
    ];
    for await (const _ of await executePlan(andThen(fromSource(iterableSource(batches)), select), ctx));
    expect([...ctx.metrics.entries()].map(([name, { rows, runs }]) => [name, rows, runs])).toEqual([
      ['iterable-source', 2, 2],
      ['select-ratings', 2, 2],
    ]);
  });
});

describe('mapOrdered', () => {
  it('keeps order and never runs more than its bound at once', async () => {
    let [running, most] = [0, 0];
    async function* numbers() {
      for (let i = 0; i < 20; i++) yield i;
    }
    const results: number[] = [];
    const slow = async (i: number) => {
      most = Math.max(most, ++running);
      for (let turns = (i * 7) % 5; turns >= 0; turns--) await setImmediate();
      running--;
      return i * i;
    };
    for await (const result of mapOrdered(numbers(), 3, slow)) results.push(result);
    expect(results).toEqual(Array.from({ length: 20 }, (_, i) => i * i));
    expect(most).toBe(3);
  });

  it('waits for the calls under way when one fails', async () => {
    let finished = 0;
    async function* numbers() {
      for (let i = 0; i < 4; i++) yield i;
    }
    const apply = async (i: number) => {
      await setImmediate();
      if (i === 0) throw new Error('first');
      finished++;
    };
    const drain = async () => {
      for await (const _ of mapOrdered(numbers(), 3, apply));
    };
    await expect(drain()).rejects.toThrow('first');
    expect(finished).toBe(2);
  });
});
