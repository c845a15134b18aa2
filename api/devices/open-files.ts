import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';
import { CapacityError } from '../../engine/errors.ts';

/** Files that a thread opens as it begins, with those that it reads at a time; and those of the calling thread. */
const OF_THREAD = 6;
const OF_CALLER = 8;

/** Throws CapacityError where the system lets this process open too few files for so many threads: a thread that cannot begin says nothing. */
export function requireOpenFiles(threads: number): void {
  const opened: number[] = [];
  const needed = OF_THREAD * threads + OF_CALLER;
  try {
    while (opened.length < needed) opened.push(openSync(devNull, 'r'));
  } catch (cause) {
    throw new CapacityError(`too many open files: ${threads} threads need ${needed} more, and the system allows ${opened.length}`, { advice: 'Raise the limit (ulimit -n), or use fewer workers', cause });
  } finally {
    for (const file of opened) closeSync(file);
  }
}
