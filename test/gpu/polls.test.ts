import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { hurryPolls, pacePolls } from '../../gpu/webgpu/polls.ts';

describe('polls of a GPU', () => {
  beforeAll(() => pacePolls(true));
  afterEach(() => vi.restoreAllMocks());

  it('wait for a moment before each, unless an answer is expected at once', async () => {
    const wait = vi.spyOn(Atomics, 'wait');
    const poll = vi.fn();
    for (const [hurried, waits] of [
      [0, 1],
      [2, 1],
      [0, 1],
      [0, 2],
    ]) {
      if (hurried > 0) hurryPolls(hurried);
      setImmediate(poll);
      await nextTurn();
      expect(wait).toHaveBeenCalledTimes(waits);
    }
    expect(poll).toHaveBeenCalledTimes(4);
  });

  it('leave the turns of the thread, arguments and cancels as they are', async () => {
    const wait = vi.spyOn(Atomics, 'wait');
    const calls: unknown[] = [];
    await nextTurn();
    clearImmediate(setImmediate(() => calls.push('cleared')));
    expect(wait).not.toHaveBeenCalled();
    setImmediate((...values: unknown[]) => calls.push(...values), 1, 2);
    await nextTurn();
    expect(calls).toEqual([1, 2]);
  });
});
