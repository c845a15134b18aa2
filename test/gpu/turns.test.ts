import { describe, expect, it } from 'vitest';
import { Turns } from '../../gpu/turns.ts';

/** Pieces of work that log their start and end, and end on request. */
function workshop() {
  const turns = new Turns();
  const log: string[] = [];
  const start = (name: string, passes: boolean) => {
    const ending = Promise.withResolvers<void>();
    const done = turns.run(async (pass) => {
      log.push(`${name} begins`);
      if (passes) pass();
      await ending.promise;
      log.push(`${name} ends`);
      return name;
    });
    return { done, end: ending.resolve, fail: () => ending.reject(new Error(name)) };
  };
  return { turns, log, start };
}

/** Waits until all pending work has run as far as it can. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('turns', () => {
  it('gives each its turn alone, in order', async () => {
    const { log, start } = workshop();
    const works = ['a', 'b', 'c'].map((name) => start(name, false));
    await settle();
    expect(log).toEqual(['a begins']);
    works[1].end();
    works[2].end();
    await settle();
    expect(log).toEqual(['a begins']);
    works[0].end();
    expect(await Promise.all(works.map(({ done }) => done))).toEqual(['a', 'b', 'c']);
    expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('lets the next begin when one passes its turn on', async () => {
    const { log, start } = workshop();
    const [a, b, c] = [start('a', true), start('b', false), start('c', true)];
    await settle();
    expect(log).toEqual(['a begins', 'b begins']);
    b.end();
    await settle();
    expect(log).toEqual(['a begins', 'b begins', 'b ends', 'c begins']);
    a.end();
    c.end();
    expect(await Promise.all([a, b, c].map(({ done }) => done))).toEqual(['a', 'b', 'c']);
  });

  it('goes on after a failure, which only its own caller gets', async () => {
    const { log, start } = workshop();
    const [a, b] = [start('a', false), start('b', false)];
    a.fail();
    await expect(a.done).rejects.toThrow('a');
    b.end();
    expect(await b.done).toBe('b');
    expect(log).toEqual(['a begins', 'b begins', 'b ends']);
  });

  it('calls the last one when those before it have ended', async () => {
    const { turns, log, start } = workshop();
    const [a, b] = [start('a', true), start('b', true)];
    const last = turns.run(async () => {
      await turns.othersEnded();
      log.push('alone');
    });
    a.end();
    await settle();
    expect(log).toEqual(['a begins', 'b begins', 'a ends']);
    b.fail();
    await Promise.allSettled([b.done, last]);
    expect(log.at(-1)).toBe('alone');
  });
});
