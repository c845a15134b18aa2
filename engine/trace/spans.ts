import { HOST } from '../plan/place.ts';
import type { Tracer } from './trace.ts';
import { PHASES } from './trace-text.ts';

/** The process's cumulative use of the machine at one time. */
export interface Usage {
  /** Milliseconds by performance.now(). */
  readonly at: number;
  /** Milliseconds of processor time, summed over threads. */
  readonly cpu: number;
  /** Bytes of files and pipes, if the system reports them. */
  readonly read?: number;
  readonly written?: number;
}

/**
 * The share of one phase in a run's time. The shares of all phases and the time outside them add up to the
 * whole.
 */
export interface PhaseShare {
  readonly phase: string;
  readonly times: number;
  readonly seconds: number;
  /** Processor time of all threads during these seconds. */
  readonly cpuSeconds: number;
  /** Bytes read from files and pipes, and written to them; absent if the system does not report them. */
  readonly bytesRead?: number;
  readonly bytesWritten?: number;
  /** Bytes that tasks copied into devices' memory and back. */
  readonly bytesUp: number;
  readonly bytesDown: number;
}

/** Names of the time outside all spans: before the first one, and later. */
const START_UP = 'start-up';
export const UNACCOUNTED = 'unaccounted';

type Row = { -readonly [Name in keyof PhaseShare]-?: PhaseShare[Name] };

/**
 * Records and times the spans of a run. Each moment belongs to the open span that started last, so
 * overlapping spans count it once: the time of a reader's pull inside its consumer's span counts for the
 * reader.
 */
export class Spans {
  /** Receives a copy of all spans: the phases and, through RunMetrics, all work of devices. */
  readonly tracer: Tracer | undefined;
  readonly #usage: () => Usage;
  readonly #shares = new Map<string, Row>();
  readonly #open: { readonly name: string }[] = [];
  #began = false;
  #last: Usage;
  /** The phase that the tracer has not received completely. */
  #traced: { readonly name: string; readonly start: number } | undefined;

  /** `from`: the use at the start. */
  constructor(usage: () => Usage, from: Usage = usage(), tracer?: Tracer) {
    this.#usage = usage;
    this.#last = from;
    this.tracer = tracer;
  }

  /** Starts a span; it ends when disposed. */
  begin(name: string): Disposable {
    this.#account();
    this.#began = true;
    const span = { name };
    this.#open.push(span);
    this.#share(name).times++;
    return {
      [Symbol.dispose]: () => {
        const place = this.#open.lastIndexOf(span);
        if (place < 0) return;
        this.#account();
        this.#open.splice(place, 1);
      },
    };
  }

  /** Counts bytes that a task has copied. */
  moved(bytesUp: number, bytesDown: number): void {
    const share = this.#current();
    share.bytesUp += bytesUp;
    share.bytesDown += bytesDown;
  }

  /** The shares until now, in the order in which phases first started; the time outside them is last. */
  shares(): PhaseShare[] {
    this.#account();
    this.#endTraced(this.#last.at);
    const knows = this.#last.read !== undefined;
    const all = [...this.#shares.values()].sort(
      (left, right) => Number(left.phase === UNACCOUNTED) - Number(right.phase === UNACCOUNTED),
    );
    return all.map(({ bytesRead, bytesWritten, ...share }) =>
      knows ? { ...share, bytesRead, bytesWritten } : share,
    );
  }

  /** Assigns the use since the last call to the open span that started last. */
  #account(): void {
    const now = this.#usage();
    const share = this.#current();
    if (this.tracer !== undefined && now.at > this.#last.at) this.#trace(share.phase, this.#last.at);
    share.seconds += (now.at - this.#last.at) / 1000;
    share.cpuSeconds += (now.cpu - this.#last.cpu) / 1000;
    share.bytesRead += (now.read ?? 0) - (this.#last.read ?? 0);
    share.bytesWritten += (now.written ?? 0) - (this.#last.written ?? 0);
    this.#last = now;
  }

  /** Sends the tracer the phase that has ended; another one continues from `start`. */
  #trace(phase: string, start: number): void {
    if (this.#traced?.name === phase) return;
    this.#endTraced(start);
    this.#traced = { name: phase, start };
  }

  #endTraced(end: number): void {
    if (this.#traced !== undefined && this.#traced.name !== UNACCOUNTED && this.tracer !== undefined)
      this.tracer.span({ place: HOST, row: PHASES, end, ...this.#traced });
    this.#traced = undefined;
  }

  #current(): Row {
    return this.#share(this.#open.at(-1)?.name ?? (this.#began ? UNACCOUNTED : START_UP));
  }

  #share(phase: string): Row {
    let share = this.#shares.get(phase);
    if (share === undefined)
      this.#shares.set(
        phase,
        (share = {
          phase,
          times: 0,
          seconds: 0,
          cpuSeconds: 0,
          bytesRead: 0,
          bytesWritten: 0,
          bytesUp: 0,
          bytesDown: 0,
        }),
      );
    return share;
  }
}
