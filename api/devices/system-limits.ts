/**
 * Limits of the system (ulimit) under which threads cannot begin: they are named before, since a thread that
 * cannot begin ends the process or says nothing.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { CapacityError } from '../../engine/errors.ts';
import { counted, formatBytes } from '../../engine/format.ts';
import { FILES_OF_CALLER, FILES_OF_THREAD } from './file-table.ts';

/**
 * Addresses that Node reserves for a thread (590 MiB, measured with Node 24), the WebAssembly memory of a
 * device, and what a small run takes beside them.
 */
const ADDRESSES_OF_THREAD = 600 * 2 ** 20;
const ADDRESSES_OF_DEVICE = 4 * 2 ** 30;
const ADDRESSES_OF_RUN = 2 ** 28;

/**
 * Throws CapacityError where the system lets this process open too few files, or have too few addresses, for
 * so many threads on so many devices of the CPU.
 */
export function requireLimits(threads: number, devices = 1): void {
  requireOpenFiles(threads);
  const limits = addressLimits();
  if (limits === undefined) return;
  const needed =
    limits.used + ADDRESSES_OF_DEVICE * devices + ADDRESSES_OF_THREAD * threads + ADDRESSES_OF_RUN;
  if (needed <= limits.most) return;
  throw new CapacityError(
    `this process may have ${formatBytes(limits.most)} of addresses, of which it has ${formatBytes(limits.used)}; with ${counted(threads, 'thread')} it takes ${formatBytes(needed)}`,
    { advice: 'Raise the limit (ulimit -v), or use fewer workers' },
  );
}

function requireOpenFiles(threads: number): void {
  const opened: number[] = [];
  const needed = FILES_OF_THREAD * threads + FILES_OF_CALLER;
  try {
    while (opened.length < needed) opened.push(openSync(devNull, 'r'));
  } catch (cause) {
    throw new CapacityError(
      `too many open files: ${threads} threads need ${needed} more, and the system allows ${opened.length}`,
      { advice: 'Raise the limit (ulimit -n), or use fewer workers', cause },
    );
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/**
 * Bytes of addresses that this process may have and has; undefined without a limit, and on systems that do
 * not tell.
 */
function addressLimits(): { readonly most: number; readonly used: number } | undefined {
  if (process.platform !== 'linux') return undefined;
  const most = numberIn('/proc/self/limits', /^Max address space +(\d+)/m);
  const used = numberIn('/proc/self/status', /^VmSize:\s+(\d+) kB/m);
  return most === undefined || used === undefined ? undefined : { most, used: 1024 * used };
}

function numberIn(file: string, pattern: RegExp): number | undefined {
  try {
    const found = pattern.exec(readFileSync(file, 'utf8'))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined; // A container may hide it.
  }
}
