import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { errorCode } from '../files/file-problem.ts';

/**
 * Of the host and, where there are such, the space of process numbers, which a container has of its own from
 * each start to its end; `withSpace` false: of the host alone.
 */
export function hostDigest(withSpace = true): string {
  let space = '';
  try {
    if (withSpace) space = readlinkSync('/proc/self/ns/pid');
  } catch {
    // Not Linux.
  }
  return createHash('sha256').update(`${hostname()} ${space}`).digest('hex').slice(0, 12);
}

/**
 * The time at which a process began, in ticks since the machine started; undefined where the system does not
 * tell.
 */
export function startOf(id: number): number | undefined {
  try {
    // The name in parentheses may hold spaces; start is the 22nd field, the 20th behind it.
    return Number(readFileSync(`/proc/${id}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19]);
  } catch {
    return undefined;
  }
}

/**
 * False for a process of this host that is no more. `start`: by `startOf`, or 0 where the system did not
 * tell.
 */
export function isRunning(id: number, start: number): boolean {
  try {
    process.kill(id, 0);
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
  }
  const now = startOf(id);
  return now === undefined || start === 0 || now === start;
}
