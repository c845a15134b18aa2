import { readFileSync } from 'node:fs';
import { type PhaseShare, Spans, type Usage } from '../../engine/trace/spans.ts';
import type { Trace } from './trace.ts';

/**
 * The system's byte counters are read at most once in this number of milliseconds: a read takes some
 * microseconds.
 */
const BYTES_EVERY = 2;

/** The time of a run by phase. */
export interface ProfileReport {
  /** Wall time: the sum of the phases' seconds. */
  readonly seconds: number;
  /** In the order in which they first started; `unaccounted` is the time outside them. */
  readonly phases: readonly PhaseShare[];
}

/**
 * Measures the wall time of this process by phase while sessions created with it work: `Session.create({
 * profile })`. Seconds and processor time include all threads of the process, so two concurrent runs in one
 * process cannot be separated.
 */
export class Profile {
  /** @internal */
  readonly spans: Spans;

  /**
   * `from`: 'now', or 'process' to count from the start of the process; the time until the first phase is
   * then called start-up. `trace` also receives every span.
   */
  constructor({ from = 'now', trace }: { readonly from?: 'now' | 'process'; readonly trace?: Trace } = {}) {
    const usage = usageOfProcess();
    this.spans = new Spans(usage, from === 'process' ? { at: 0, cpu: 0 } : usage(), trace?.tracer);
  }

  /** Times a phase of your own; it ends when disposed, for example by `using`. */
  begin(phase: string): Disposable {
    return this.spans.begin(phase);
  }

  /** The phases until now. */
  report(): ProfileReport {
    const phases = this.spans.shares();
    return { seconds: phases.reduce((sum, { seconds }) => sum + seconds, 0), phases };
  }
}

/** Byte counts come from Linux, which includes every thread. */
function usageOfProcess(): () => Usage {
  let bytes: Pick<Usage, 'read' | 'written'> = {};
  let lastRead = Number.NEGATIVE_INFINITY;
  return () => {
    const at = performance.now();
    const { user, system } = process.cpuUsage();
    if (at - lastRead >= BYTES_EVERY) {
      bytes = bytesOfProcess();
      lastRead = at;
    }
    return { at, cpu: (user + system) / 1000, ...bytes };
  };
}

function bytesOfProcess(): Pick<Usage, 'read' | 'written'> {
  if (process.platform !== 'linux') return {};
  try {
    const counters = readFileSync('/proc/self/io', 'latin1');
    const counted = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(counters)?.[1] ?? 0);
    return { read: counted('rchar'), written: counted('wchar') };
  } catch {
    return {};
  }
}
