import { describe, expect, it } from 'vitest';
import { RunMetrics } from '../../engine/metrics.ts';
import { Spans, type Usage } from '../../engine/trace/spans.ts';

/** A process of two busy threads that reads a byte a millisecond; `pass` lets time go by. */
function process() {
  let at = 5;
  const usage = (): Usage => ({ at, cpu: 2 * at, read: at, written: 0 });
  return { usage, pass: (milliseconds: number) => void (at += milliseconds) };
}

const secondsOf = (spans: Spans) =>
  Object.fromEntries(spans.shares().map(({ phase, seconds }) => [phase, Math.round(1000 * seconds)]));

describe('the record of spans', () => {
  it('gives each moment to the open span that began last, so that shares add up to the wall time', () => {
    const { usage, pass } = process();
    const spans = new Spans(usage, { at: 0, cpu: 0, read: 0, written: 0 });
    pass(2);
    const sort = spans.begin('sort');
    pass(10);
    const read = spans.begin('read');
    pass(3);
    const number = spans.begin('number');
    pass(4);
    // Ends while another span that started later continues.
    read[Symbol.dispose]();
    pass(5);
    number[Symbol.dispose]();
    pass(1);
    sort[Symbol.dispose]();
    pass(8);
    expect(secondsOf(spans)).toEqual({ 'start-up': 7, sort: 11, read: 3, number: 9, unaccounted: 8 });
    expect(spans.shares().at(-1)?.phase).toBe('unaccounted');
    for (const { seconds, cpuSeconds, bytesRead } of spans.shares()) {
      expect(cpuSeconds).toBeCloseTo(2 * seconds, 9);
      expect(bytesRead).toBeCloseTo(1000 * seconds, 6);
    }
  });

  it('counts how often a phase began, and ends a span once', () => {
    const { usage, pass } = process();
    const spans = new Spans(usage);
    for (let i = 0; i < 3; i++) {
      const span = spans.begin('pull');
      pass(2);
      span[Symbol.dispose]();
      span[Symbol.dispose]();
      pass(1);
    }
    expect(spans.shares().find(({ phase }) => phase === 'pull')).toMatchObject({ times: 3, seconds: 0.006 });
    expect(secondsOf(spans).unaccounted).toBe(3);
  });

  it('gets the bytes that tasks move, in the phase that is open', () => {
    const { usage } = process();
    const spans = new Spans(usage);
    const metrics = new RunMetrics(spans);
    metrics.time('search', () => metrics.add('top-n', { rows: 1, bytesUp: 100, bytesDown: 20 }));
    metrics.add('top-n', { bytesDown: 3 });
    expect(spans.shares().map(({ phase, bytesUp, bytesDown }) => [phase, bytesUp, bytesDown])).toEqual([
      ['start-up', 0, 0],
      ['search', 100, 20],
      ['unaccounted', 0, 3],
    ]);
  });

  it('leaves bytes of files out where the system does not tell', () => {
    const spans = new Spans(() => ({ at: 1, cpu: 1 }));
    expect(spans.shares()[0]).not.toHaveProperty('bytesRead');
  });
});
