import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { errorCode } from '../files/file-problem.ts';
import { realPath } from '../files/real-path.ts';

/** A file or folder beside a target that must not outlive the process. */
interface Temporary {
  readonly temporary: string;
  /** Set for an old output that was moved aside: the place that it returns to when that is empty. */
  readonly restoreTo?: string;
}

const registered = new Map<string, Temporary>();

/**
 * The number of this process's next name. It starts from the time, so that leftovers of an earlier process of
 * the same id have lower numbers.
 */
let made = Date.now();

export function registerTemporary(temporary: Temporary): void {
  registered.set(temporary.temporary, temporary);
}

export function forgetTemporary(path: string): void {
  registered.delete(path);
}

/**
 * Removes every unfinished output of this process; synchronous, so that a signal handler can call it. May be
 * called again.
 */
export function removeTemporaries(): void {
  for (const { temporary, restoreTo } of registered.values()) {
    try {
      if (restoreTo !== undefined && !existsSync(restoreTo)) renameSync(temporary, restoreTo);
      else rmSync(temporary, { recursive: true, force: true });
    } catch {
      // The process is ending: the next one that writes to the same target clears the leftovers.
    }
  }
}

/**
 * A name beside the target that data readers ignore and that tells its process:
 * "model" -> ".model.tmp-<process>-<number>@<host>".
 */
export function siblingName(target: string, role: 'tmp' | 'old'): string {
  return join(dirname(target), `.${stemOf(target)}.${role}-${process.pid}-${made++}@${hostname()}`);
}

/** The target's name; its digest where a longer name would not fit into the 255 bytes of file systems. */
function stemOf(target: string): string {
  const name = basename(target);
  return Buffer.byteLength(name) <= 150 ? name : createHash('sha256').update(name).digest('hex').slice(0, 40);
}

/**
 * Clears the leftovers of dead processes of this host beside `target`. An old output that had been moved
 * aside goes back when its replacement never arrived. Without permission to write it does nothing, since
 * readers need none.
 *
 */
export async function recoverOutput(target: string): Promise<void> {
  const parent = dirname(target);
  const names = await readdir(parent).catch((): string[] => []);
  const left = names.flatMap((name) => parse(join(parent, name), target)).filter((found) => !isInUse(found));
  const old = left.find(({ role }) => role === 'old');
  if (old !== undefined && !names.includes(basename(target))) {
    const back = await rename(old.path, target).then(
      () => true,
      () => false,
    );
    // It may be the only copy.
    if (!back) left.splice(left.indexOf(old), 1);
  }
  for (const { path } of left) await rm(path, { recursive: true, force: true }).catch(() => undefined);
}

/**
 * Time between looks at an output that another process replaces, and their number: renaming takes
 * microseconds.
 */
const LOOK_MILLISECONDS = 20;
const MOST_LOOKS = 100;

/**
 * Brings a missing input back, where it is or lies in an output that a process had moved aside when it died,
 * and waits while a living process replaces it. True when the path exists.
 *
 */
export async function recoverInput(path: string): Promise<boolean> {
  for (let look = 0; look < MOST_LOOKS; look++) {
    if (existsSync(path)) return true;
    const missing = await firstMissing(path);
    await recoverOutput(missing);
    if (existsSync(missing)) continue;
    if (!(await isBeingReplaced(missing))) return false;
    await setTimeout(LOOK_MILLISECONDS);
  }
  return existsSync(path);
}

/** The first of a path's folders that does not exist, or the path itself; links are followed. */
async function firstMissing(path: string): Promise<string> {
  const real = await realPath(path);
  const parent = dirname(real);
  return existsSync(parent) || parent === real ? real : firstMissing(parent);
}

/**
 * True while a living process replaces the target (it has moved the old one aside), or when the target
 * exists.
 */
export async function isBeingReplaced(target: string): Promise<boolean> {
  const names = await readdir(dirname(target)).catch((): string[] => []);
  return (
    names
      .flatMap((name) => parse(join(dirname(target), name), target))
      .some((found) => found.role === 'old' && isInUse(found)) || existsSync(target)
  );
}

/** The parts of a name beside a target. */
interface Found {
  readonly path: string;
  readonly role: string;
  readonly process: number;
  readonly number: number;
}

function parse(path: string, target: string): Found[] {
  const prefix = `.${stemOf(target)}.`;
  if (!basename(path).startsWith(prefix)) return [];
  const match = /^(tmp|old)-(\d+)-(\d+)@(.*)$/.exec(basename(path).slice(prefix.length));
  return match !== null && match[4] === hostname()
    ? [{ path, role: match[1], process: Number(match[2]), number: Number(match[3]) }]
    : [];
}

function isInUse({ path, process: id, number }: Found): boolean {
  if (id !== process.pid) return isAlive(id);
  // In a container every run may have the same process id.
  return registered.has(path) || number >= Date.now() - process.uptime() * 1000;
}

function isAlive(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== 'ESRCH';
  }
}
