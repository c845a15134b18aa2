/** Upper bounds of the histogram of request times, in seconds. */
const BOUNDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

interface Times {
  /** Requests up to each bound, and beyond the last one; not cumulative. */
  readonly counts: Float64Array;
  sum: number;
}

/** Gauges, which are read when the metrics are requested. */
export interface Gauges {
  readonly users: number;
  readonly items: number;
  readonly loadedAt: Date;
  readonly running: number;
}

/** Counts and times of requests and reloads, in the text format of Prometheus. */
export class Metrics {
  readonly #requests = new Map<string, number>();
  readonly #times = new Map<string, Times>();
  readonly #reloads = { ok: 0, failed: 0 };
  #failing = false;
  #total = 0;

  /** Number of requests that were answered. */
  get total(): number {
    return this.#total;
  }

  /** Counts a request; `route` is the pattern of its path, so that the number of series stays small. */
  answered(route: string, status: number, seconds: number): void {
    this.#total++;
    const key = `route="${route}",status="${status}"`;
    this.#requests.set(key, (this.#requests.get(key) ?? 0) + 1);
    let times = this.#times.get(route);
    if (times === undefined) {
      times = { counts: new Float64Array(BOUNDS.length + 1), sum: 0 };
      this.#times.set(route, times);
    }
    const at = BOUNDS.findIndex((bound) => seconds <= bound);
    times.counts[at < 0 ? BOUNDS.length : at]++;
    times.sum += seconds;
  }

  reloaded(outcome: 'ok' | 'failed'): void {
    this.#reloads[outcome]++;
    this.#failing = outcome === 'failed';
  }

  /** The text for Prometheus. */
  text({ users, items, loadedAt, running }: Gauges): string {
    const lines = [
      ...family('factorflow_requests_total', 'counter', 'Answered requests by route and status.', [
        ...this.#requests,
      ]),
      ...this.#histogram(),
      ...family('factorflow_reloads_total', 'counter', 'Attempts to load another model.', [
        ['outcome="ok"', this.#reloads.ok],
        ['outcome="failed"', this.#reloads.failed],
      ]),
      ...gauge(
        'reload_failing',
        '1 if the last reload failed and an older model answers.',
        Number(this.#failing),
      ),
      ...gauge('model_loaded_timestamp_seconds', 'Time of the last load.', loadedAt.getTime() / 1000),
      ...gauge('model_users', 'Users of the model.', users),
      ...gauge('model_items', 'Items of the model.', items),
      ...gauge('requests_running', 'Requests that are being answered.', running),
      ...gauge('resident_bytes', 'Resident memory of the process.', process.memoryUsage.rss()),
    ];
    return `${lines.join('\n')}\n`;
  }

  #histogram(): string[] {
    const name = 'factorflow_request_seconds';
    const lines = [`# HELP ${name} Time from request to answer.`, `# TYPE ${name} histogram`];
    for (const [route, { counts, sum }] of this.#times) {
      let below = 0;
      counts.forEach((count, at) => {
        below += count;
        lines.push(`${name}_bucket{route="${route}",le="${BOUNDS[at] ?? '+Inf'}"} ${below}`);
      });
      lines.push(`${name}_sum{route="${route}"} ${sum}`, `${name}_count{route="${route}"} ${below}`);
    }
    return lines;
  }
}

function family(
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  values: readonly (readonly [labels: string, value: number])[],
): string[] {
  const samples = values.map(([labels, value]) => `${name}${labels === '' ? '' : `{${labels}}`} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples];
}

function gauge(name: string, help: string, value: number): string[] {
  return family(`factorflow_${name}`, 'gauge', help, [['', value]]);
}
