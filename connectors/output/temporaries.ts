import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync, readFileSync, readlinkSync } from 'node:fs';
import {
  readdir,
  rename,
  rm,
  readlink,
  realpath,
  lstat,
  stat,
  utimes,
  type FileHandle,
  open,
} from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { errorCode } from '../files/file-problem.ts';

const registered = new Set<Temporary>();

/** Timer for the signs of life; it runs while anything is registered. */
let beats: NodeJS.Timeout | undefined;

/** Makes the names of this thread's temporaries distinct. */
let made = Date.now();

/** A file or folder of this process, which gives signs of life, and is removed when the process ends. */
export class Temporary {
  readonly path: string;
  /** For an old output that was moved aside: the path to move it back to if that is free. */
  readonly restoreTo: string | undefined;
  /** Called regularly as a sign of life, so that other processes leave it alone. */
  readonly beat: () => Promise<unknown>;

  /** `beat`: default, sets its time. */
  constructor(path: string, beat?: () => Promise<unknown>, restoreTo?: string) {
    this.path = path;
    this.restoreTo = restoreTo;
    this.beat = beat ?? (() => touch(path));
    registered.add(this);
    beats ??= setInterval(giveSigns, BEAT_MILLISECONDS).unref();
  }

  /** An unfinished output next to its target. */
  static beside(target: string): Temporary {
    return new Temporary(siblingName(target, 'tmp'));
  }

  /** The place of an old output that is moved aside. */
  static aside(target: string): Temporary {
    return new Temporary(siblingName(target, 'old'), undefined, target);
  }

  /** Called once it has been moved or removed. */
  forget(): void {
    registered.delete(this);
    if (registered.size > 0) return;
    clearInterval(beats);
    beats = undefined;
  }
}

function giveSigns(): void {
  // Fails harmlessly if the file does not exist yet or no longer.
  for (const { beat } of registered) void beat().catch(() => undefined);
}

/**
 * Removes all unfinished output of this process. Synchronous, so that a signal handler can call it; may be
 * called repeatedly.
 */
export function removeTemporaries(): void {
  for (const { path, restoreTo } of registered) {
    try {
      if (restoreTo !== undefined && !existsSync(restoreTo)) renameSync(path, restoreTo);
      else rmSync(path, { recursive: true, force: true });
    } catch {
      // The process is ending; the next process that writes to the target removes the leftovers.
    }
  }
}

/** Paths of this thread's unfinished output that may be removed. */
export function unfinishedPaths(): string[] {
  return [...registered].flatMap(({ path, restoreTo }) => (restoreTo === undefined ? [path] : []));
}

/**
 * A name next to the target, which readers of data ignore, with the process that made it (see Owner): "model"
 * -> ".model.tmp-<space>-<process>-<start>-<number>".
 */
function siblingName(target: string, role: 'tmp' | 'old'): string {
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
  // It may be the only copy.
  if (old !== undefined && !names.includes(basename(target)) && !(await moveBack(old.path, target)))
    left.splice(left.indexOf(old), 1);
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
function presentTime(target: string): Promise<number | undefined> {
  return withSibling(target, async (handle) => (await handle.stat()).mtimeMs).catch(() => undefined);
}

/** Runs `use` with a new file next to the target, which is then removed. */
export async function withSibling<Result>(
  target: string,
  use: (handle: FileHandle, path: string) => Promise<Result>,
): Promise<Result> {
  const temporary = Temporary.beside(target);
  const { path } = temporary;
  try {
    const handle = await open(path, 'wx');
    try {
      return await use(handle, path);
    } finally {
      await handle.close();
      await rm(path, { force: true });
    }
  } finally {
    temporary.forget();
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
export function madeBeside(target: string, names: readonly string[]) {
  const prefix = `.${stemOf(target)}.`;
  return names.flatMap((name) => {
    const match = /^(tmp|old)-([0-9a-f]{12})-(\d+)-(\d+)-\d+$/.exec(
      name.startsWith(prefix) ? name.slice(prefix.length) : '',
    );
    if (match === null) return [];
    const owner: Owner = { space: match[2], process: Number(match[3]), start: Number(match[4]) };
    return [{ path: join(dirname(target), name), role: match[1], owner, state: stateOf(owner) }];
  });
}

/** Most links in one path; systems have the same limit. */
const MOST_LINKS = 40;

/** Resolves links, even if the target does not exist yet. */
export async function realPath(target: string, links = 0): Promise<string> {
  return realpath(target).catch(async () => {
    const link = links < MOST_LINKS ? await readlink(target).catch(() => undefined) : undefined;
    return link === undefined ? resolve(target) : realPath(resolve(dirname(target), link), links + 1);
  });
}

/**
 * A process that owns a file or folder. Processes of the same space (machine, boot and container) can be
 * checked: their property is free as soon as they have ended. Owners in other spaces are judged by their
 * signs of life: they touch their property every `BEAT_MILLISECONDS`, and count as ended after
 * `SILENT_MILLISECONDS` without a touch.
 */
interface Owner {
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
function startOf(id: number): number | undefined {
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
