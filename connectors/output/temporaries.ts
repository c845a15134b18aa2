import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { realPath } from '../files/real-path.ts';
import { createFile } from './new-file.ts';
import {
  BEAT_MILLISECONDS,
  isSilent,
  type Owner,
  ownOwner,
  SILENT_MILLISECONDS,
  stateOf,
  touch,
} from './owners.ts';

/** A file or folder next to a target, to be removed when the process ends. */
interface Temporary {
  readonly temporary: string;
  /** For an old output that was moved aside: the path to move it back to if that is free. */
  readonly restoreTo?: string;
  /** Called regularly as a sign of life, so that other processes leave it alone. Default: sets its time. */
  readonly beat?: () => Promise<unknown>;
}

const registered = new Map<string, Temporary>();

/** Timer for the signs of life; it runs while anything is registered. */
let beats: NodeJS.Timeout | undefined;

/** Makes the names of this thread's temporaries distinct. */
let made = Date.now();

export function registerTemporary(temporary: Temporary): void {
  registered.set(temporary.temporary, temporary);
  beats ??= setInterval(giveSigns, BEAT_MILLISECONDS).unref();
}

export function forgetTemporary(path: string): void {
  registered.delete(path);
  if (registered.size > 0) return;
  clearInterval(beats);
  beats = undefined;
}

function giveSigns(): void {
  for (const { temporary, beat = () => touch(temporary) } of registered.values())
    // Fails harmlessly if the file does not exist yet or no longer.
    void beat().catch(() => undefined);
}

/**
 * Removes all unfinished output of this process. Synchronous, so that a signal handler can call it; may be
 * called repeatedly.
 */
export function removeTemporaries(): void {
  for (const { temporary, restoreTo } of registered.values()) {
    try {
      if (restoreTo !== undefined && !existsSync(restoreTo)) renameSync(temporary, restoreTo);
      else rmSync(temporary, { recursive: true, force: true });
    } catch {
      // The process is ending; the next process that writes to the target removes the leftovers.
    }
  }
}

/** Paths of this thread's unfinished output that may be removed. */
export function unfinishedPaths(): string[] {
  return [...registered.values()].flatMap(({ temporary, restoreTo }) =>
    restoreTo === undefined ? [temporary] : [],
  );
}

/**
 * A name next to the target, which readers of data ignore, with the process that made it (see Owner): "model"
 * -> ".model.tmp-<space>-<process>-<start>-<number>".
 */
export function siblingName(target: string, role: 'tmp' | 'old'): string {
  const { space, process: id, start } = ownOwner();
  return join(dirname(target), `.${stemOf(target)}.${role}-${space}-${id}-${start}-${made++}`);
}

/** The target's name; its digest if a longer name would exceed the 255 bytes of file systems. */
function stemOf(target: string): string {
  const name = basename(target);
  return Buffer.byteLength(name) <= 150 ? name : createHash('sha256').update(name).digest('hex').slice(0, 40);
}

/**
 * Removes what ended processes have left next to `target`: at once if the process can be checked, else after
 * a minute without a sign of life. An old output that was moved aside is moved back if its replacement never
 * arrived. Does nothing without permission to write, which readers do not need.
 */
export async function recoverOutput(target: string): Promise<void> {
  const names = await readdir(dirname(target)).catch((): string[] => []);
  const left = await leftBeside(target, names);
  const old = left.find(({ role }) => role === 'old');
  if (old !== undefined && !names.includes(basename(target))) {
    // It may be the only copy.
    if (!(await moveBack(old.path, target))) left.splice(left.indexOf(old), 1);
  }
  for (const { path } of left) await rm(path, { recursive: true, force: true }).catch(() => undefined);
}

async function moveBack(old: string, target: string): Promise<boolean> {
  return rename(old, target).then(
    () => true,
    () => false,
  );
}

/** Leftovers of ended processes next to a target, from the names in its folder. */
async function leftBeside(target: string, names: readonly string[]) {
  const found = madeBeside(target, names);
  const unknown = found.filter(({ state }) => state === 'unknown');
  const left = found.filter(({ state }) => state === 'ended');
  const now = unknown.length === 0 ? undefined : await presentTime(target);
  if (now === undefined) return left;
  for (const one of unknown) if (await isSilent(one.path, now - SILENT_MILLISECONDS)) left.push(one);
  return left;
}

/**
 * Milliseconds by the file system's clock, since another machine's clock may differ. Undefined if nothing can
 * be written, and so nothing removed.
 */
async function presentTime(target: string): Promise<number | undefined> {
  const path = siblingName(target, 'tmp');
  registerTemporary({ temporary: path });
  try {
    const handle = await createFile(path);
    try {
      return (await handle.stat()).mtimeMs;
    } finally {
      await handle.close();
      await rm(path, { force: true });
    }
  } catch {
    return undefined;
  } finally {
    forgetTemporary(path);
  }
}

/**
 * Milliseconds between two checks of an output that another process is replacing, and the number of checks.
 * The renames themselves take microseconds.
 */
const CHECK_MILLISECONDS = 20;
const MOST_CHECKS = 100;

/**
 * Restores a missing input. If a process died after moving the output aside, the output (the path itself or a
 * folder that contains it) is moved back; while a living process replaces it, this waits. True if the path
 * exists.
 */
export async function recoverInput(path: string): Promise<boolean> {
  let missing = path;
  for (let check = 0; check < MOST_CHECKS; check++) {
    if (existsSync(path)) return true;
    missing = await firstMissing(path);
    await recoverOutput(missing);
    if (existsSync(missing)) continue;
    if (!(await isBeingReplaced(missing))) return false;
    await setTimeout(CHECK_MILLISECONDS);
  }
  // The replacing process is stopped, or it ended where this process cannot check it. If it continues, it
  // moves the old output aside again.
  const names = await readdir(dirname(missing)).catch((): string[] => []);
  const old = madeBeside(missing, names).find(({ role }) => role === 'old');
  if (old !== undefined) await moveBack(old.path, missing);
  return existsSync(path);
}

/** The first missing folder of a path, or the path itself; links are followed. */
async function firstMissing(path: string): Promise<string> {
  const real = await realPath(path);
  const parent = dirname(real);
  return existsSync(parent) || parent === real ? real : firstMissing(parent);
}

/**
 * True if the target exists, or if a process that may be alive is replacing it (has moved the old one aside).
 */
export async function isBeingReplaced(target: string): Promise<boolean> {
  const names = await readdir(dirname(target)).catch((): string[] => []);
  return (
    madeBeside(target, names).some(({ role, state }) => role === 'old' && state !== 'ended') ||
    existsSync(target)
  );
}

/** Temporaries next to a target with the states of their owners, from the names in its folder. */
function madeBeside(target: string, names: readonly string[]) {
  return ownersBeside(target, names).map((one) => ({ ...one, state: stateOf(one.owner) }));
}

/** Temporaries next to a target and the processes that made them, from the names in its folder. */
export function ownersBeside(target: string, names: readonly string[]) {
  const prefix = `.${stemOf(target)}.`;
  return names.flatMap((name) => {
    const match = /^(tmp|old)-([0-9a-f]{12})-(\d+)-(\d+)-\d+$/.exec(
      name.startsWith(prefix) ? name.slice(prefix.length) : '',
    );
    if (match === null) return [];
    const owner: Owner = { space: match[2], process: Number(match[3]), start: Number(match[4]) };
    return [{ path: join(dirname(target), name), role: match[1], owner }];
  });
}
