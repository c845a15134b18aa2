import { describe, expect, it } from 'vitest';
import { RunMetrics } from '../../engine/metrics.ts';
import { onSpeculation } from '../../engine/run/context.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { sharedClock } from '../../engine/threads/shared-clock.ts';
import { Spans } from '../../engine/trace/spans.ts';
import { PHASES, TraceText } from '../../engine/trace/trace-text.ts';
import { Recording } from '../support/steps/recorded-runs.ts';
import { gpuInfo } from '../support/steps/small-problems.ts';
import { checkTrace } from '../support/traces.ts';

function textOf(most?: number) {
  let text = '';
  const trace = new TraceText((piece) => void (text += piece), most);
  return { trace, end: () => (trace.end({ command: 'test' }), checkTrace(text)) };
}

const span = (start: number, end: number, row = 'reads') => ({
  place: 'files',
  row,
  name: 'part',
  start,
  end,
});

describe('a trace', () => {
  it('names a timeline for each place, and keeps spans of a row apart', () => {
    const { trace, end } = textOf();
    for (const [from, to] of [
      [1, 5],
      [2, 3],
      [3, 6],
      [5, 7],
      [0, 0.5],
    ])
      trace.span(span(from, to));
    trace.span({ ...span(1, 2, 'thread 1'), place: 'gpu:0', args: { rows: 3 } });
    const { spans, rows } = end();
    expect(rows).toEqual(['files reads', 'files reads 2', 'files reads 3', 'gpu:0 thread 1']);
    expect(spans.map(({ place, row, start }) => [place, row, start])).toEqual([
      ['files', 'reads', 1],
      ['files', 'reads 2', 2],
      ['files', 'reads 2', 3],
      ['files', 'reads', 5],
      ['files', 'reads 3', 0],
      ['gpu:0', 'thread 1', 1],
    ]);
    expect(spans.at(-1)?.args).toEqual({ rows: 3 });
  });

  it('gives spans that touch one row, however their times round', () => {
    const { trace, end } = textOf();
    for (let at = 0; at < 1000; at++) trace.span(span(at / 7, (at + 1) / 7));
    expect(end().rows).toEqual(['files reads']);
  });

  it('leaves spans out beyond its bound and tells their number, but never phases', () => {
    const { trace, end } = textOf(3);
    for (let at = 0; at < 5; at++) trace.span(span(at, at + 1));
    trace.span({ ...span(0, 9, PHASES), place: 'host' });
    const { spans, other } = end();
    expect(spans).toHaveLength(4);
    expect(other).toEqual({ command: 'test', spans: 4, dropped: { files: 2 } });
  });

  it('hands every span on at once', () => {
    let longest = 0;
    const trace = new TraceText((piece) => void (longest = Math.max(longest, piece.length)));
    for (let at = 0; at < 100_000; at++) trace.span(span(at, at + 0.5));
    expect(longest).toBeLessThan(300);
  });

  it('is a second reader of the record of spans: the phases follow each other as a profile counts them', () => {
    const { trace, end } = textOf();
    let at = 0;
    const spans = new Spans(() => ({ at, cpu: 0 }), { at: 0, cpu: 0 }, trace);
    const pass = (milliseconds: number) => void (at += milliseconds);
    pass(1);
    const sort = spans.begin('sort');
    pass(2);
    for (let i = 0; i < 2; i++) {
      using _ = spans.begin('read');
      pass(3);
    }
    sort[Symbol.dispose]();
    pass(4);
    const shares = spans.shares();
    const { spans: seen } = end();
    expect(seen.map(({ name, start, end: to }) => [name, start, to])).toEqual([
      ['start-up', 0, 1],
      ['sort', 1, 3],
      ['read', 3, 9],
    ]);
    for (const { phase, seconds } of shares.filter(({ phase }) => phase !== 'unaccounted')) {
      expect(
        seen.filter(({ name }) => name === phase).reduce((sum, { start, end: to }) => sum + to - start, 0),
      ).toBeCloseTo(1000 * seconds, 9);
    }
    expect(new RunMetrics(spans).tracer).toBe(trace);
    expect(new RunMetrics().tracer).toBeUndefined();
  });

  it('marks the steps that were sent on speculation, tasks and others', async () => {
    const { trace, end } = textOf();
    const metrics = new RunMetrics(new Spans(() => ({ at: 0, cpu: 0 }), { at: 0, cpu: 0 }, trace));
    const { devices, ctx } = new Recording({ rows: [], columns: 0, compute: [gpuInfo(0)] });
    const span = () => ({ row: 'queue', name: 'fill', start: sharedClock(), milliseconds: 0 });
    devices[0].run = async () => ({
      metrics: { rows: 2, bytesUp: 0, bytesDown: 0, milliseconds: 0 },
      values: {},
      spans: [span()],
    });
    const steps = new StepList({ fill: { rows: 'write' } });
    const ref = { name: 'rows', partition: 0, version: 0 };
    steps.allocate('start', 'gpu:0', ref, { rows: 2, columns: 1, stride: 4 });
    steps.task('start', 'gpu:0', { kernel: 'fill', inputs: {}, outputs: { rows: ref }, params: {} });
    steps.handOut('start', ref, 'gpu:0');
    const traced = { ...ctx, metrics };
    for (const run of [onSpeculation(traced), traced]) await runSteps(steps.steps, run);
    expect(end().spans.map(({ args = {} }) => [args.what ?? args.kernel, args.speculative])).toEqual([
      ['allocate', true],
      ['fill', true],
      ['hand-out', true],
      ['allocate', undefined],
      ['fill', undefined],
      ['hand-out', undefined],
    ]);
  });
});
