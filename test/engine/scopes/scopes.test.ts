/** Stages of a scope: when they begin, how they fail, and what they leave. */
import { afterAll, describe, expect, it } from 'vitest';
import { openCpus } from '../../../cpu/device.ts';
import { CancelledError } from '../../../engine/errors.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { giveTo } from '../../../engine/run/run-steps.ts';
import { constant, Scope } from '../../../engine/run/scope.ts';
import { contextOf } from '../../support/steps/small-problems.ts';

const [cpu] = openCpus(1, 1);
const executor = new LocalExecutor([cpu]);
afterAll(() => executor.close());

const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new CancelledError())));

/** A matrix of one row on the device. */
const held = { name: 'scope/rows', partition: 0, version: 0 };
const row = { layout: 'factors', rows: 1, columns: { values: new Float32Array(4) } } as const;
const isHeld = () =>
  cpu.fetch(held).then(
    () => true,
    () => false,
  );

describe('a stage', () => {
  it('begins when the stages that it needs have ended, and gets their results', async () => {
    const order: string[] = [];
    const result = await Scope.within(contextOf(executor), async (scope) => {
      const gate = Promise.withResolvers<number>();
      const read = scope.stage('read', {}, () => gate.promise);
      const sum = scope.stage('sum', { read, two: constant('two', 2) }, ({ read: one, two }) => {
        order.push('sum');
        return one + two;
      });
      const alone = scope.stage('alone', {}, () => void order.push('alone'));
      await alone.result;
      gate.resolve(1);
      return sum.result;
    });
    expect(result).toBe(3);
    expect(order).toEqual(['alone', 'sum']);
  });

  it('that fails cancels the others, and its error comes once they have ended', async () => {
    let ended = false;
    const run = Scope.within(contextOf(executor), async (scope) => {
      const slow = scope.stage('slow', {}, async (_, { signal }) => {
        try {
          return await never(signal);
        } finally {
          await new Promise((resolve) => setTimeout(resolve, 10));
          ended = true;
        }
      });
      const bad = scope.stage('bad', {}, () => Promise.reject(new Error('row 7')));
      scope.stage('later', { slow }, () => expect.unreachable());
      await bad.result;
    });
    await expect(run).rejects.toThrow('row 7');
    expect(ended).toBe(true);
  });

  it('that is earlier in the list gives its error where two fail', async () => {
    const run = Scope.within(contextOf(executor), async (scope) => {
      const later = Promise.withResolvers<void>();
      const first = scope.stage('first', {}, async () => {
        await later.promise;
        throw new Error('first');
      });
      scope.stage('second', {}, () => {
        later.resolve();
        throw new Error('second');
      });
      await first.result;
    });
    await expect(run).rejects.toThrow('first');
  });

  it('that another failure cancelled does not hide that failure, with whichever error it ends', async () => {
    const run = Scope.within(contextOf(executor), async (scope) => {
      const read = scope.stage('read', {}, async (_, { signal }) => {
        await never(signal).catch(() => signal.throwIfAborted());
      });
      scope.stage('bad', {}, () => Promise.reject(new Error('row 9')));
      await read.result;
    });
    await expect(run).rejects.toThrow('row 9');
  });

  it('that waits for what never comes ends with the scope', async () => {
    const run = Scope.within(contextOf(executor), async (scope) => {
      const never = { name: 'outside', result: new Promise<void>(() => {}) };
      scope.stage('waits', { never }, () => expect.unreachable());
      await scope.stage('bad', {}, () => Promise.reject(new Error('row 8'))).result;
    });
    await expect(run).rejects.toThrow('row 8');
  });

  it('is cancelled by the run, and not begun later', async () => {
    const cancel = new AbortController();
    const run = Scope.within({ ...contextOf(executor), signal: cancel.signal }, async (scope) => {
      const read = scope.stage('read', {}, (_, { signal }) => never(signal));
      const sort = scope.stage('sort', { read }, () => expect.unreachable());
      cancel.abort();
      await sort.result;
    });
    await expect(run).rejects.toBeInstanceOf(CancelledError);
  });

  it.each(['first', 'second', 'third'])('leaves nothing allocated where stage %s fails', async (failing) => {
    const run = Scope.within(contextOf(executor), async (scope) => {
      const first = scope.stage('first', {}, async (_, ctx) => {
        await giveTo(ctx, 'cpu', [[held, row]]);
        if (failing === 'first') throw new Error(failing);
      });
      const second = scope.stage('second', { first }, async () => {
        expect(await isHeld()).toBe(true);
        if (failing === 'second') throw new Error(failing);
      });
      const third = scope.stage('third', { second }, () => {
        throw new Error('third');
      });
      await third.result;
    });
    await expect(run).rejects.toThrow(failing);
    expect(await isHeld()).toBe(false);
  });
});

describe('a scope in a scope', () => {
  it('fails alone, and the code that opened it goes on', async () => {
    const result = await Scope.within(contextOf(executor), async (outer) => {
      const other = outer.stage('other', {}, () => 'other');
      const attempt = outer.stage('attempt', {}, (_, ctx) =>
        Scope.within(ctx, async (inner) => {
          await inner.stage('round', {}, async (__, own) => {
            await giveTo(own, 'cpu', [[held, row]]);
            throw new Error('lost');
          }).result;
          return 'done';
        }).catch(() => 'recovered'),
      );
      expect(await attempt.result).toBe('recovered');
      expect(await isHeld()).toBe(false);
      expect(outer.ctx.signal.aborted).toBe(false);
      return other.result;
    });
    expect(result).toBe('other');
  });
});

describe('a speculation', () => {
  it('that fails has no result, and the scope goes on', async () => {
    const result = await Scope.within(contextOf(executor), async (scope) => {
      const guess = scope.speculate('guess', {}, () => Promise.reject<number>(new Error('no room')));
      return scope.stage('use', { guess }, (found) => found.guess ?? 'made anew').result;
    });
    expect(result).toBe('made anew');
  });

  it('is taken back once it has ended, and once', async () => {
    await Scope.within(contextOf(executor), async (scope) => {
      const undone: number[] = [];
      const gate = Promise.withResolvers<number>();
      const guess = scope.speculate('guess', {}, () => gate.promise, {
        undo: async (made) => void undone.push(made),
      });
      const discarded = scope.discard([guess]);
      expect(undone).toEqual([]);
      gate.resolve(5);
      await discarded;
      await scope.discard([guess]);
      expect(undone).toEqual([5]);
    });
  });

  it('that nothing waits for is cancelled when the scope has its result', async () => {
    let cancelled = false;
    await Scope.within(contextOf(executor), async (scope) => {
      scope.speculate('compile', {}, (_, { signal }) => {
        signal.addEventListener('abort', () => (cancelled = true));
        return never(signal);
      });
      await scope.stage('work', {}, () => 1).result;
    });
    expect(cancelled).toBe(true);
  });
});

describe('stages within a bound of memory', () => {
  it('work one after the other where their bytes are not known, in the order of the list', async () => {
    const order: string[] = [];
    const step = (name: string) => async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setTimeout(resolve));
      order.push(`${name} ends`);
    };
    await Scope.within(
      contextOf(executor),
      async (scope) => {
        const stages = ['a', 'b', 'c'].map((name) => scope.stage(name, {}, step(name)));
        const free = scope.stage('free', {}, () => void order.push('free'), { need: 'none' });
        await Promise.all([...stages, free].map(({ result }) => result));
      },
      { capacityBytes: 100 },
    );
    expect(order.filter((one) => one !== 'free')).toEqual(
      ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]),
    );
    expect(order.indexOf('free')).toBeLessThan(2);
  });

  it('work side by side where they fit, and a failure ends those that wait for room', async () => {
    const run = Scope.within(
      contextOf(executor),
      async (scope) => {
        const need = (during: number) => () => ({ during, left: 0 });
        const slow = scope.stage('slow', {}, (_, { signal }) => never(signal), { need: need(60) });
        const beside = scope.stage('beside', {}, () => 'beside', { need: need(40) });
        const waits = scope.stage('waits', {}, () => expect.unreachable(), { need: need(60) });
        expect(await beside.result).toBe('beside');
        scope.stage('bad', {}, () => Promise.reject(new Error('bad')), { need: 'none' });
        await Promise.all([slow.result, waits.result]);
      },
      { capacityBytes: 100 },
    );
    await expect(run).rejects.toThrow('bad');
  });
});
