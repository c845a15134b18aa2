import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { lstat, readdir, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { errorCode } from '../files/file-problem.ts';

/**
 * A process that owns a file or folder. A process of this space can be looked for: what it owns is free once it
 * has ended. An owner of another space is known by its signs of life alone: it touches what it owns every
 * `BEAT_MILLISECONDS`, and counts as ended after `SILENT_MILLISECONDS` without one.
 */
export interface Owner {
  /** Digest of the machine's boot, its name and the space of process numbers (a container has its own). */
  readonly space: string;
  readonly process: number;
  /** By `startOf`: a later process of the same number has another. 0 where the system does not give it. */
  readonly start: number;
}

export const BEAT_MILLISECONDS = 10_000;
export const SILENT_MILLISECONDS = 60_000;

/** Digits of a space that no other process can be sure to share. */
const UNKNOWN_SPACE = '0'.repeat(12);

let own: Owner | undefined;

/** This process. */
export function ownOwner(): Owner {
  return (own ??= { space: spaceOf(), process: process.pid, start: startOf(process.pid) ?? 0 });
}

/**
 * Two containers may have the same host name, and two boots the same number of a space: only together they say
 * that process numbers mean the same processes. Other systems than Linux have no such spaces.
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

/** Time at which a process of this space began, in ticks since the boot; undefined where it is not known. */
export function startOf(id: number): number | undefined {
  try {
    // A container may have the /proc of its host, with other numbers.
    if (readlinkSync('/proc/self') !== `${process.pid}`) return undefined;
    // The name in parentheses may hold spaces; the start is the 22nd field, the 20th after the name.
    return Number(readFileSync(`/proc/${id}/stat`, 'latin1').split(') ').at(-1)?.split(' ')[19]);
  } catch {
    return undefined;
  }
}

/** 'unknown': the owner is of another space, and only its signs of life can be looked at. */
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

/** Gives a file or folder the present time of its file system, as a sign of life. */
export async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now);
  // The time of the change is by the file system's own clock, which other machines see.
  const { ctime } = await stat(path);
  if (Math.abs(ctime.getTime() - now.getTime()) > 1000) await utimes(path, ctime, ctime);
}

/**
 * True where a file or folder, with all files below it, has had no sign of life since `before`, in
 * milliseconds by the clock of its file system. What cannot be looked at is not silent.
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
