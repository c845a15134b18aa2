import { existsSync, renameSync, rmSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { errorCode } from './file-problem.ts';

/** Something beside a target that must not outlive the process. */
interface Temporary {
  readonly temporary: string;
  /** An old output that was moved aside: it goes back to this place when nothing stands there. */
  readonly restoreTo?: string;
}

const registered = new Map<string, Temporary>();
let made = 0;

export function registerTemporary(temporary: Temporary): void {
  registered.set(temporary.temporary, temporary);
}

export function forgetTemporary(path: string): void {
  registered.delete(path);
}

/** Removes every unfinished output of this process; synchronous, so that a signal handler can call it before it exits. May be called again. */
export function removeTemporaries(): void {
  for (const { temporary, restoreTo } of registered.values()) {
    try {
      if (restoreTo !== undefined && !existsSync(restoreTo)) renameSync(temporary, restoreTo);
      else rmSync(temporary, { recursive: true, force: true });
    } catch {
      // The process is ending: the next one that writes to the same target clears what is left.
    }
  }
}

/**
 * A name beside the target that data readers ignore and that tells whose it is:
 * "model" -> ".model.tmp-<process>-<number>@<host>".
 */
export function siblingName(target: string, role: 'tmp' | 'old'): string {
  return join(dirname(target), `.${basename(target)}.${role}-${process.pid}-${made++}@${hostname()}`);
}

/**
 * Clears what processes of this host that are no longer alive left beside `target`. An old output that had been moved
 * aside goes back when its replacement never arrived. Does nothing when there is nothing.
 */
export async function recoverOutput(target: string): Promise<void> {
  const parent = dirname(target);
  let names: string[];
  try {
    names = await readdir(parent);
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'EACCES') return;
    throw error;
  }
  const present = names.includes(basename(target));
  const left = names.map((name) => ({ name, ...parse(name, basename(target)) })).filter(({ process: id }) => id !== undefined && !isAlive(id));
  const old = left.find(({ role }) => role === 'old');
  if (!present && old !== undefined) await rename(join(parent, old.name), target);
  for (const { name } of left) await rm(join(parent, name), { recursive: true, force: true });
}

function parse(name: string, target: string): { role?: string; process?: number } {
  const prefix = `.${target}.`;
  if (!name.startsWith(prefix)) return {};
  const match = /^(tmp|old)-(\d+)-\d+@(.*)$/.exec(name.slice(prefix.length));
  return match !== null && match[3] === hostname() ? { role: match[1], process: Number(match[2]) } : {};
}

function isAlive(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== 'ESRCH';
  }
}
