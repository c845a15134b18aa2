import { expect } from 'vitest';

interface Event {
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly name: string;
  readonly ts?: number;
  readonly dur?: number;
  readonly args?: Readonly<Record<string, unknown>>;
}

/** Milliseconds. */
export interface SeenSpan {
  readonly place: string;
  readonly row: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly args: Event['args'];
}

/**
 * A trace in Chrome's format, after checks: every span has a named row and lasts 0 or longer, and the spans
 * of a row do not overlap.
 */
export function checkTrace(text: string): {
  readonly spans: readonly SeenSpan[];
  readonly rows: readonly string[];
  readonly other: Readonly<Record<string, unknown>>;
} {
  const { traceEvents, otherData } = JSON.parse(text) as {
    readonly traceEvents: readonly Event[];
    readonly otherData: Record<string, unknown>;
  };
  const names = new Map<string, string>();
  for (const { ph, pid, tid, name, args } of traceEvents) {
    expect(['M', 'X']).toContain(ph);
    if (ph === 'M' && name.endsWith('_name'))
      names.set(name === 'process_name' ? `${pid}` : `${pid} ${tid}`, String(args?.name));
  }
  const spans = traceEvents.flatMap(({ ph, pid, tid, name, ts, dur, args }): SeenSpan[] => {
    if (ph !== 'X') return [];
    const [place, row] = [names.get(`${pid}`), names.get(`${pid} ${tid}`)];
    if (place === undefined || row === undefined || ts === undefined || dur === undefined)
      throw new Error(`the span ${name} has no row or no time`);
    expect(Math.min(ts, dur)).toBeGreaterThanOrEqual(0);
    return [{ place, row, name, start: ts / 1000, end: (ts + dur) / 1000, args }];
  });
  const rows = Map.groupBy(spans, ({ place, row }) => `${place} ${row}`);
  for (const own of rows.values()) {
    own
      .toSorted((left, right) => left.start - right.start || left.end - right.end)
      .reduce((before, one) => {
        expect(one.start + 1e-6).toBeGreaterThanOrEqual(before.end);
        return one;
      });
  }
  return { spans, rows: [...rows.keys()], other: otherData };
}
