import type { JsonObject } from '../json.ts';
import type { Tracer, TraceSpan } from './trace.ts';

/** Spans that one trace has at most; browsers draw about so many. Phases are never left out. */
export const MOST_SPANS = 1_000_000;

/** The first characters of every trace. */
export const TRACE_HEAD = '{"displayTimeUnit":"ms","traceEvents":[';

/** The row of the phases of a run. */
export const PHASES = 'phases';

/** The order of the timelines. */
const places = ['host', 'files', 'spill', 'cpu', 'gpu'];

/** One row of a timeline: spans in it follow each other. */
interface Row {
  readonly id: number;
  /** Nanoseconds. */
  end: number;
}

interface Timeline {
  readonly id: number;
  /** Rows by name; further ones hold spans that overlap. */
  readonly rows: Map<string, Row[]>;
}

/**
 * Spans as the text of a Chrome trace (chrome://tracing, Perfetto): a process for each place and a thread for
 * each row of it; spans of a kind that overlap take further rows, so that those of one row follow each other.
 * Holds rows alone: every span is text at once.
 */
export class TraceText implements Tracer {
  readonly #write: (text: string) => void;
  readonly #most: number;
  readonly #timelines = new Map<string, Timeline>();
  readonly #dropped = new Map<string, number>();
  #spans = 0;
  #rows = 0;

  /** `write` takes the text piece by piece. */
  constructor(write: (text: string) => void, most = MOST_SPANS) {
    this.#write = write;
    this.#most = most;
    write(`${TRACE_HEAD}\n{"ph":"M","pid":0,"tid":0,"name":"process_name","args":{"name":"factorflow"}}`);
  }

  span({ place, row, name, start, end, args }: TraceSpan): void {
    if (this.#spans >= this.#most && row !== PHASES) {
      this.#dropped.set(place, (this.#dropped.get(place) ?? 0) + 1);
      return;
    }
    this.#spans++;
    // Whole nanoseconds, so that rounding makes no spans overlap.
    const [from, to] = [Math.round(1e6 * start), Math.round(1e6 * Math.max(start, end))];
    const timeline = this.#timeline(place);
    const thread = this.#row(timeline, row, from);
    thread.end = to;
    this.#write(
      `,\n{"ph":"X","pid":${timeline.id},"tid":${thread.id},"ts":${from / 1000},"dur":${(to - from) / 1000},"name":${JSON.stringify(name)}${args === undefined ? '' : `,"args":${JSON.stringify(args)}`}}`,
    );
  }

  /** Spans that were left out, by place. */
  get dropped(): JsonObject {
    return Object.fromEntries(this.#dropped);
  }

  /** Ends the text. `about`: facts for its reader. */
  end(about: JsonObject = {}): void {
    this.#write(
      `\n],"otherData":${JSON.stringify({ ...about, spans: this.#spans, dropped: this.dropped })}}\n`,
    );
  }

  #timeline(place: string): Timeline {
    let found = this.#timelines.get(place);
    if (found === undefined) {
      this.#timelines.set(place, (found = { id: this.#timelines.size + 1, rows: new Map() }));
      this.#tell(found.id, 0, 'process_name', { name: place });
      this.#tell(found.id, 0, 'process_sort_index', {
        sort_index: places.indexOf(place.split(':')[0]) * 100 + found.id,
      });
    }
    return found;
  }

  /** The first row of the name that is free at that time. */
  #row({ id, rows }: Timeline, name: string, from: number): Row {
    let found = rows.get(name);
    if (found === undefined) rows.set(name, (found = []));
    let row = found.find(({ end }) => end <= from);
    if (row === undefined) {
      row = { id: ++this.#rows, end: 0 };
      found.push(row);
      this.#tell(id, row.id, 'thread_name', { name: found.length === 1 ? name : `${name} ${found.length}` });
      this.#tell(id, row.id, 'thread_sort_index', { sort_index: this.#rows });
    }
    return row;
  }

  #tell(pid: number, tid: number, name: string, args: JsonObject): void {
    this.#write(`,\n{"ph":"M","pid":${pid},"tid":${tid},"name":"${name}","args":${JSON.stringify(args)}}`);
  }
}
