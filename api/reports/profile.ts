import { readFileSync } from 'node:fs';
import { type PhaseShare, Spans, type Usage } from '../../engine/trace/spans.ts';
import type { Trace } from './trace.ts';

/** Least milliseconds between two looks at the system's counters of bytes, which cost some microseconds. */
const BYTES_EVERY = 2;

/** The time of a run, phase by phase. */
export interface ProfileReport {
  /** Wall time: the sum of the phases' seconds. */
  readonly seconds: number;
  /** In the order in which they first began; `unaccounted` is the time outside of them. */
  readonly phases: readonly PhaseShare[];
}

/**
 * Measures where the wall time of this process goes while sessions that were created with it work:
 * `Session.create({ profile })`. Seconds and processor time count all threads of the process, so two runs at
 * once in one process are not told apart.
 */
export class Profile {
  /** @internal */
  readonly spans: Spans;

  /**
   * `from`: 'now', or 'process' to count from the start of the process. The time until the first phase is
   * called start-up. `trace` takes every span as well.
   */
  constructor({ from = 'now', trace }: { readonly from?: 'now' | 'process'; readonly trace?: Trace } = {}) {
    const usage = usageOfProcess();
    this.spans = new Spans(usage, from === 'process' ? { at: 0, cpu: 0 } : usage(), trace?.tracer);
  }

  /** Times a phase of the caller's own; it ends when it is disposed of, as by `using`. */
  begin(phase: string): Disposable {
    return this.spans.begin(phase);
  }

  /** The phases until now. */
  report(): ProfileReport {
    const phases = this.spans.shares();
    return { seconds: phases.reduce((sum, { seconds }) => sum + seconds, 0), phases };
  }
}

/** Bytes come from Linux, which counts those of every thread. */
function usageOfProcess(): () => Usage {
  let bytes: Pick<Usage, 'read' | 'written'> = {};
  let looked = Number.NEGATIVE_INFINITY;
  return () => {
    const at = performance.now();
    const { user, system } = process.cpuUsage();
    if (at - looked >= BYTES_EVERY) {
      bytes = bytesOfProcess();
      looked = at;
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
