import { promisify } from 'node:util';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { hurryPolls, pacePolls } from '../../gpu/webgpu/polls.ts';

/** A function that looks like one of Dawn's binding: native, without a name. */
const native = (run: () => void) => Object.defineProperty(run.bind(undefined), 'name', { value: '' });

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

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
      setImmediate(native(poll));
      await nextTurn();
      expect(wait).toHaveBeenCalledTimes(waits);
    }
    expect(poll).toHaveBeenCalledTimes(4);
  });

  it('leave other callbacks as they are', async () => {
    const wait = vi.spyOn(Atomics, 'wait');
    const told: unknown[] = [];
    setImmediate((...values: unknown[]) => told.push(...values), 1, 2);
    clearImmediate(setImmediate(() => told.push('cleared')));
    expect(await promisify(setImmediate)('value')).toBe('value');
    expect(told).toEqual([1, 2]);
    expect(wait).not.toHaveBeenCalled();
  });

  it('leave native functions of others as they are, with their arguments', async () => {
    const wait = vi.spyOn(Atomics, 'wait');
    const told: unknown[] = [];
    const tell = function (this: string, ...values: unknown[]) {
      told.push(this, ...values);
    };
    setImmediate(tell.bind('bound'));
    setImmediate(tell.bind('bound'), 1, 2);
    setImmediate(Array.prototype.push.bind(told), 'pushed');
    await nextTurn();
    expect(told).toEqual(['bound', 'bound', 1, 2, 'pushed']);
    expect(wait).not.toHaveBeenCalled();
  });

  it('leave the refusal of what is no function to Node', () => {
    for (const other of [undefined, null, 'text', {}])
      expect(() => setImmediate(other as never)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
      );
  });
});
