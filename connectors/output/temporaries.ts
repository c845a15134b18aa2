import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { realPath } from '../files/real-path.ts';
import { hostDigest, isRunning, startOf } from './processes.ts';

/** A file or folder beside a target that must not outlive the process. */
interface Temporary {
  readonly temporary: string;
  /** Set for an old output that was moved aside: the place that it returns to when that is empty. */
  readonly restoreTo?: string;
}

const registered = new Map<string, Temporary>();

/** The number of this thread's next name. */
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
 * A name beside the target that data readers ignore, with the process that made it; `start` differs from that
 * of a later process of the same number: "model" -> ".model.tmp-<host>-<process>-<start>-<number>".
 * `host`: by default a container that was started again clears what it left before.
 */
export function siblingName(target: string, role: 'tmp' | 'old', host = hostDigest(false)): string {
  const owner = `${host}-${process.pid}-${startOf(process.pid) ?? 0}`;
  return join(dirname(target), `.${stemOf(target)}.${role}-${owner}-${made++}`);
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
export async function recoverOutput(target: string, host?: string): Promise<void> {
  const parent = dirname(target);
  const names = await readdir(parent).catch((): string[] => []);
  const left = madeBeside(target, names, host).filter(({ running }) => !running);
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
    madeBeside(target, names).some(({ role, running }) => role === 'old' && running) || existsSync(target)
  );
}

/** What processes of this host have made beside a target, among the names in its folder. */
export function madeBeside(target: string, names: readonly string[], host = hostDigest(false)) {
  const prefix = `.${stemOf(target)}.`;
  return names.flatMap((name) => {
    const match = /^(tmp|old)-([0-9a-f]{12})-(\d+)-(\d+)-\d+$/.exec(
      name.startsWith(prefix) ? name.slice(prefix.length) : '',
    );
    if (match?.[2] !== host) return [];
    const [role, id, running] = [match[1], Number(match[3]), isRunning(Number(match[3]), Number(match[4]))];
    return [{ path: join(dirname(target), name), role, process: id, running }];
  });
}
