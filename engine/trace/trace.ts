import type { JsonObject } from '../json.ts';
import { sharedClock } from '../threads/shared-clock.ts';

/**
 * Work on a timeline. `place` is a place of the plan (`host`, `cpu`, `gpu:0`), or `files` or `spill`; `row`
 * is the kind of work there, or the thread that did it. `start` and `end` are milliseconds by
 * performance.now() of the calling thread.
 */
export interface TraceSpan {
  readonly place: string;
  readonly row: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly args?: JsonObject;
}

/**
 * Work that a device's thread tells of itself. `start` is by sharedClock(). The device gives the place where
 * none is given here; `files` is that of what reads and writes files.
 */
export type DeviceSpan = {
  readonly place?: string;
  readonly row: string;
  readonly name: string;
  readonly start: number;
  readonly milliseconds: number;
  readonly args?: JsonObject;
};

/** Takes spans at all times, in the order in which they come. */
export interface Tracer {
  span(span: TraceSpan): void;
}

/** A file that was read or written since `start`, by sharedClock(). */
export function fileSpan(row: 'reads' | 'writes', file: string, start: number, args: JsonObject): DeviceSpan {
  return {
    place: 'files',
    row,
    name: file.split(/[\\/]/).slice(-2).join('/'),
    start,
    milliseconds: sharedClock() - start,
    args: { file, ...args },
  };
}
