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
 * Work that a device's thread reports. `start` is by sharedClock(). Default of `place`: the device; `files`
 * for reading and writing files.
 */
export type DeviceSpan = {
  readonly place?: string;
  readonly row: string;
  readonly name: string;
  readonly start: number;
  readonly milliseconds: number;
  readonly args?: JsonObject;
};

/** Receives spans at any time, in any order. */
export interface Tracer {
  span(span: TraceSpan): void;
}

/** The span of a file that was read or written since `start`, by sharedClock(). */
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
