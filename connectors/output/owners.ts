import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { lstat, readdir, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { errorCode } from '../files/file-problem.ts';

/**
 * A process that owns a file or folder. Processes of the same space (machine, boot and container) can be
 * checked: their property is free as soon as they have ended. Owners in other spaces are judged by their
 * signs of life: they touch their property every `BEAT_MILLISECONDS`, and count as ended after
 * `SILENT_MILLISECONDS` without a touch.
 */
export interface Owner {
  /**
   * Digest of the machine's boot, its name, and its namespace of process numbers (each container has its
   * own).
   */
  readonly space: string;
  readonly process: number;
  /**
   * Start time from `startOf`, to distinguish a later process with the same number. 0 if the system does not
   * report it.
   */
  readonly start: number;
}

export const BEAT_MILLISECONDS = 10_000;
export const SILENT_MILLISECONDS = 60_000;

/**
 * Space of a process that cannot be identified. Two such processes are never taken to be in the same space.
 */
const UNKNOWN_SPACE = '0'.repeat(12);

let own: Owner | undefined;

/** This process. */
export function ownOwner(): Owner {
  return (own ??= { space: spaceOf(), process: process.pid, start: startOf(process.pid) ?? 0 });
}

/**
 * A digest of the space of this process. Two containers may have the same host name, and two boots the same
 * namespace number; only together they show that a process number means the same process. Systems other than
 * Linux have no namespaces.
 */
function spaceOf(): string {
  try {
    const linux =
      process.platform === 'linux'
        ? `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1')} ${readlinkSync('/proc/self/ns/pid')}`
        : process.platform;
    return createHash('sha256').update(`${hostname()} ${linux}`).digest('hex').slice(0, 12);
  } catch {
    return UNKNOWN_SPACE;
  }
}

/** Start of a process of this space, in ticks since the boot; undefined if it is not known. */
export function startOf(id: number): number | undefined {
  try {
    // A container may show the /proc of its host, in which process numbers differ.
    if (readlinkSync('/proc/self') !== `${process.pid}`) return undefined;
    // The name in parentheses may contain spaces. The start is the 22nd field, the 20th after the name.
    return Number(readFileSync(`/proc/${id}/stat`, 'latin1').split(') ').at(-1)?.split(' ')[19]);
  } catch {
    return undefined;
  }
}

/** 'unknown': the owner is in another space, so only its signs of life can be checked. */
export function stateOf(owner: Owner): 'running' | 'ended' | 'unknown' {
  if (owner.space === UNKNOWN_SPACE || owner.space !== ownOwner().space) return 'unknown';
  return isRunning(owner.process, owner.start) ? 'running' : 'ended';
}

function isRunning(id: number, start: number): boolean {
  try {
    process.kill(id, 0);
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
  }
  const now = startOf(id);
  return now === undefined || start === 0 || now === start;
}

/** Sets the time of a file or folder to its file system's present time, as a sign of life. */
export async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now);
  // ctime is by the file system's own clock, which other machines see too.
  const { ctime } = await stat(path);
  if (Math.abs(ctime.getTime() - now.getTime()) > 1000) await utimes(path, ctime, ctime);
}

/**
 * True if neither a file or folder nor any file below it has had a sign of life since `before`, in
 * milliseconds by the file system's clock. False if it cannot be read.
 */
export async function isSilent(path: string, before: number): Promise<boolean> {
  try {
    const found = await lstat(path);
    if (found.mtimeMs >= before) return false;
    if (!found.isDirectory()) return true;
    for (const name of await readdir(path)) if (!(await isSilent(join(path, name), before))) return false;
    return true;
  } catch (error) {
    return errorCode(error) === 'ENOENT';
  }
}
