import { sharedClock } from '../../engine/threads/shared-clock.ts';
import type { DeviceSpan } from '../../engine/trace/trace.ts';

/** Spans that wait for the next reply of the thread, at most. */
const MOST_WAITING = 10_000;

/** The work of a GPU's thread beside its tasks, for a trace: transfers and compiling. */
export class Journal {
  #spans: DeviceSpan[] = [];

  /** Notes the time until `work` ends; a failure is not noted. */
  async during<Result>(row: string, name: string, work: Promise<Result>, bytes?: number): Promise<Result> {
    const start = sharedClock();
    const result = await work;
    if (this.#spans.length < MOST_WAITING) this.#spans.push({ row, name, start, milliseconds: sharedClock() - start, ...(bytes === undefined ? {} : { args: { bytes } }) });
    return result;
  }

  /** The spans since the last call. */
  take(): readonly DeviceSpan[] {
    const spans = this.#spans;
    this.#spans = [];
    return spans;
  }
}
