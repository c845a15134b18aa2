import type { JsonObject } from '../json.ts';
import type { Tracer, TraceSpan } from './trace.ts';

/** Most spans of one trace, about the limit of what browsers draw. Phases are never left out. */
export const MOST_SPANS = 1_000_000;

/** The first characters of every trace. */
export const TRACE_HEAD = '{"displayTimeUnit":"ms","traceEvents":[';

/** The row of the phases of a run. */
export const PHASES = 'phases';

/** The order of timelines. */
const places = ['host', 'files', 'spill', 'cpu', 'gpu'];

/** One row of a timeline; its spans do not overlap. */
interface Row {
  readonly id: number;
  /** Nanoseconds. */
  end: number;
}

interface Timeline {
  readonly id: number;
  /** Rows by name; additional rows hold overlapping spans. */
  readonly rows: Map<string, Row[]>;
}

/**
 * Writes spans as a Chrome trace (chrome://tracing, Perfetto): a process for each place and a thread for each
 * of its rows. Overlapping spans are put into additional rows, so that the spans of a row do not overlap.
 * Only the rows are in memory: every span is written at once.
 */
export class TraceText implements Tracer {
  readonly #write: (text: string) => void;
  readonly #most: number;
  readonly #timelines = new Map<string, Timeline>();
  readonly #dropped = new Map<string, number>();
  #spans = 0;
  #rows = 0;

  /** `write` receives the text piece by piece. */
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
    // Whole nanoseconds, so that rounding does not make spans overlap.
    const [from, to] = [Math.round(1e6 * start), Math.round(1e6 * Math.max(start, end))];
    const timeline = this.#timeline(place);
    const thread = this.#row(timeline, row, from);
    thread.end = to;
    this.#write(
      `,\n{"ph":"X","pid":${timeline.id},"tid":${thread.id},"ts":${from / 1000},"dur":${(to - from) / 1000},"name":${JSON.stringify(name)}${args === undefined ? '' : `,"args":${JSON.stringify(args)}`}}`,
    );
  }

  /** Number of spans left out, by place. */
  get dropped(): JsonObject {
    return Object.fromEntries(this.#dropped);
  }

  /** Ends the text. `about`: facts for the reader of the trace. */
  end(about: JsonObject = {}): void {
    this.#write(
      `\n],"otherData":${JSON.stringify({ ...about, spans: this.#spans, dropped: this.dropped })}}\n`,
    );
  }

  #timeline(place: string): Timeline {
    let found = this.#timelines.get(place);
    if (found === undefined) {
      this.#timelines.set(place, (found = { id: this.#timelines.size + 1, rows: new Map() }));
      this.#writeMetadata(found.id, 0, 'process_name', { name: place });
      this.#writeMetadata(found.id, 0, 'process_sort_index', {
        sort_index: places.indexOf(place.split(':')[0]) * 100 + found.id,
      });
    }
    return found;
  }

  /** The first row with the name that is free at that time. */
  #row({ id, rows }: Timeline, name: string, from: number): Row {
    let found = rows.get(name);
    if (found === undefined) rows.set(name, (found = []));
    let row = found.find(({ end }) => end <= from);
    if (row === undefined) {
      row = { id: ++this.#rows, end: 0 };
      found.push(row);
      this.#writeMetadata(id, row.id, 'thread_name', {
        name: found.length === 1 ? name : `${name} ${found.length}`,
      });
      this.#writeMetadata(id, row.id, 'thread_sort_index', { sort_index: this.#rows });
    }
    return row;
  }

  #writeMetadata(pid: number, tid: number, name: string, args: JsonObject): void {
    this.#write(`,\n{"ph":"M","pid":${pid},"tid":${tid},"name":"${name}","args":${JSON.stringify(args)}}`);
  }
}
