import { sharedClock } from '../../engine/threads/shared-clock.ts';
import type { DeviceSpan } from '../../engine/trace/trace.ts';

/** Most spans that wait for the next reply of the thread. */
const MOST_WAITING = 10_000;

/** Records, for a trace, what a GPU's thread does in addition to tasks: transfers and compiling. */
export class Journal {
  /** True to also note passes and allocations: see inDetail. */
  detailed = false;
  #spans: DeviceSpan[] = [];

  /** Notes the time until `work` ends; a failure is not noted. */
  async during<Result>(row: string, name: string, work: Promise<Result>, bytes?: number): Promise<Result> {
    const start = sharedClock();
    const result = await work;
    if (this.#spans.length < MOST_WAITING)
      this.#spans.push({
        row,
        name,
        start,
        milliseconds: sharedClock() - start,
        ...(bytes === undefined ? {} : { args: { bytes } }),
      });
    return result;
  }

  /** Like `during`, for work that is recorded only if the journal is detailed. */
  inDetail<Result>(row: 'passes' | 'allocations', name: string, work: Promise<Result>): Promise<Result> {
    return this.detailed ? this.during(row, name, work) : work;
  }

  /** The spans since the last call. */
  take(): readonly DeviceSpan[] {
    const spans = this.#spans;
    this.#spans = [];
    return spans;
  }
}
