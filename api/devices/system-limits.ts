/**
 * Checks the system limits (ulimit) that keep threads from starting. This is done in advance, since a thread
 * that cannot start ends the process or fails silently.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { devNull, totalmem } from 'node:os';
import { errorCode } from '../../connectors/files/file-problem.ts';
import { CapacityError } from '../../engine/errors.ts';
import { counted, formatBytes } from '../../engine/format.ts';
import { FILES_OF_CALLER, FILES_OF_THREAD } from './file-table.ts';

/**
 * Address space that Node reserves for a thread (590 MiB, measured with Node 24), for the WebAssembly memory
 * of a device, and for a small run in addition.
 */
const ADDRESSES_OF_THREAD = 600 * 2 ** 20;
const ADDRESSES_OF_DEVICE = 4 * 2 ** 30;
const ADDRESSES_OF_RUN = 2 ** 28;

/**
 * Throws CapacityError if the system allows this process too few files, or too little address space, for
 * these threads and CPU devices.
 */
export function requireLimits(threads: number, devices = 1): void {
  requireOpenFiles(threads);
  const limits = addressLimits();
  if (limits === undefined) return;
  const needed =
    limits.used + ADDRESSES_OF_DEVICE * devices + ADDRESSES_OF_THREAD * threads + ADDRESSES_OF_RUN;
  if (needed <= limits.most) return;
  throw new CapacityError(
    `this process may use ${formatBytes(limits.most)} of address space and uses ` +
      `${formatBytes(limits.used)}; with ${counted(threads, 'thread')} it takes ${formatBytes(needed)}`,
    { advice: 'Raise the limit (ulimit -v), or use fewer workers' },
  );
}

function requireOpenFiles(threads: number): void {
  const opened: number[] = [];
  const needed = FILES_OF_THREAD * threads + FILES_OF_CALLER;
  try {
    while (opened.length < needed) opened.push(openSync(devNull, 'r'));
  } catch (cause) {
    if (errorCode(cause) === undefined) throw cause;
    throw new CapacityError(
      `too many open files: ${threads} threads need ${needed} more, and the system allows ${opened.length}`,
      { advice: 'Raise the limit (ulimit -n), or use fewer workers', cause },
    );
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/**
 * Limit and current size of this process's address space, in bytes; undefined without a limit, and on systems
 * that do not report it.
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

/**
 * A run may exceed its memory budget by up to a fifth, and a container's system ends what exceeds its limit.
 */
const SHARE_OF_LIMIT = 0.8;

/**
 * The limit that the system sets for the memory of this process, such as a container's; undefined if none.
 */
export function memoryLimit(): number | undefined {
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? limit : undefined;
}

/** The memory budget if none is given: the machine's memory, or in a container four fifths of its limit. */
export function usableMemory(): number {
  const limit = memoryLimit();
  return limit === undefined ? totalmem() : Math.floor(SHARE_OF_LIMIT * limit);
}
