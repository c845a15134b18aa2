import { createHash } from 'node:crypto';
import { type FileHandle, link, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import { closeReader, readRegular } from '../../engine/regular-file.ts';
import { errorCode } from '../files/file-problem.ts';
import { syncHandle } from '../output/new-file.ts';
import {
  isSilent,
  ownOwner,
  SILENT_MILLISECONDS,
  stateOf,
  Temporary,
  withSibling,
} from '../output/temporaries.ts';

const NAME = 'lock';

/** Most bytes of a lock file, which has one line. */
const MOST_BYTES = 1 << 16;

/** Most attempts to take the lock while other processes take or release it. */
const MOST_ATTEMPTS = 100;

/**
 * The process that holds a folder (see Owner), as one line of JSON in the lock file. The file's time is the
 * holder's last sign of life.
 */
interface Holder {
  readonly process: number;
  readonly start: number;
  readonly host: string;
  /** The machine or container of the holder (see Owner). */
  readonly machine: string;
  readonly since: string;
}

/**
 * Gives a folder to one process at a time, by a file named `lock` in it. The lock of a killed process is
 * taken over: at once on the same machine; after a minute without a sign of life if the process is in another
 * container or on another host, where it cannot be checked. proper-lockfile does not check for the process:
 * after a kill it waits 10 s for a sign of life, and its error names no holder
 * (docs/decisions/folder-lock.md).
 */
export class FolderLock {
  readonly #file: string;
  readonly #text: string;
  readonly #own: Temporary;
  /**
   * The lock file that this process has created. The handle stays valid even if another process replaces the
   * file.
   */
  readonly #handle: FileHandle;

  private constructor(file: string, text: string, handle: FileHandle) {
    this.#file = file;
    this.#text = text;
    this.#handle = handle;
    // A sign of life: writes the same text again, which sets the file's time by the file system's clock. The
    // handle ensures that only this process's own lock file is written.
    this.#own = new Temporary(file, () => handle.write(text, 0));
  }

  /** Throws UsageError that names the holder. */
  static async take(folder: string): Promise<FolderLock> {
    const file = join(folder, NAME);
    const { space, start } = ownOwner();
    const holder: Holder = {
      process: process.pid,
      start,
      host: hostname(),
      machine: space,
      since: new Date().toISOString(),
    };
    const text = `${JSON.stringify(holder)}\n`;
    await acquire(file, text);
    return new FolderLock(file, text, await open(file, 'r+'));
  }

  /**
   * Throws UsageError if another process has taken the folder over, since this one was silent for too long.
   */
  async requireHeld(): Promise<void> {
    if (!(await this.#isHeld()))
      throw new UsageError('another run has taken the folder over', {
        file: this.#file,
        advice: 'Let one run at a time use it',
      });
  }

  /**
   * Removes the lock. Never throws, since that would hide the error of a run that has failed: a lock that cannot
   * be removed is left, and taken over once this process has ended.
   */
  async leave(): Promise<void> {
    const held = await this.#isHeld().catch(() => false);
    this.#own.forget();
    await closeReader(this.#handle);
    if (held) await rm(this.#file, { force: true }).catch(() => undefined);
  }

  async #isHeld(): Promise<boolean> {
    return textOf(this.#file) === this.#text;
  }
}

/**
 * Creates the lock file with this text, if there is none or its holder has ended. Several processes may find
 * the same stale lock file. To replace it, a process must first create a claim: a file named by a hash of the
 * stale text, which only one can create. A claim whose process has ended is replaced in the same way.
 */
async function acquire(file: string, text: string): Promise<void> {
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const now = await place(file, text);
    if (now === undefined) return;
    const found = textOf(file);
    if (found === undefined) continue;
    await requireEnded(file, found, now);
    const claim = `${file}.${createHash('sha256').update(found).digest('hex').slice(0, 12)}`;
    await acquire(claim, text);
    if (textOf(file) === found) return rename(claim, file);
    await rm(claim, { force: true });
  }
  throw new UsageError('other processes keep taking the folder', {
    file,
    advice: 'Let one run at a time use it',
  });
}

/**
 * Text of a lock file; undefined if there is none. Throws UsageError for a file that no run has placed there.
 */
function textOf(file: string): string | undefined {
  try {
    return Buffer.from(readRegular(file, MOST_BYTES, { phase: 'lock' })).toString();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw unreadable(file, error);
  }
}

function unreadable(file: string, cause?: unknown): UsageError {
  return new UsageError('the lock of the folder cannot be read', {
    file,
    advice: 'Remove it where no run uses the folder',
    cause,
  });
}

/**
 * Creates the lock file: as a hard link to a complete draft, so that it has its whole text at once. In a file
 * system without hard links it is created first and then written. Returns undefined on success. If a lock
 * file exists, returns the present time by the file system's clock.
 */
function place(file: string, text: string): Promise<number | undefined> {
  return withSibling(file, async (handle, draft) => {
    await handle.writeFile(text);
    await syncHandle(handle);
    const { mtimeMs } = await handle.stat();
    const taken = (error: unknown) => {
      if (errorCode(error) === 'EEXIST') return true;
      throw error;
    };
    // In a file system without hard links another process may find the new file while it is still empty.
    const failed = await link(draft, file).then(
      () => false,
      (error: unknown) =>
        errorCode(error) === 'EEXIST' || writeFile(file, text, { flag: 'wx' }).then(() => false, taken),
    );
    return failed ? mtimeMs : undefined;
  });
}

async function requireEnded(file: string, text: string, now: number): Promise<void> {
  const holder = parse(text);
  if (holder === undefined) throw unreadable(file);
  const state = stateOf({ ...holder, space: holder.machine });
  const here = state === 'running';
  if (state === 'ended' || (!here && (await isSilent(file, now - SILENT_MILLISECONDS)))) return;
  const beat = (await stat(file).catch(() => undefined))?.mtimeMs ?? now;
  const place = here
    ? 'this machine'
    : `${holder.host}, where it was seen ${Math.max(0, Math.round((now - beat) / 1000))} s ago`;
  const later = here ? '' : `; a run that was killed there is replaced after ${SILENT_MILLISECONDS / 1000} s`;
  throw new UsageError(
    `the folder is in use by process ${holder.process} on ${place}, since ${holder.since}`,
    { file, advice: `Wait until it has ended, or give another folder${later}` },
  );
}

function parse(text: string): Holder | undefined {
  try {
    const value = JSON.parse(text) as Partial<Holder> | null;
    const isHolder =
      Number.isSafeInteger(value?.process) &&
      Number(value?.process) > 0 &&
      Number.isFinite(value?.start) &&
      typeof value?.machine === 'string';
    const shown = (name: unknown) =>
      String(name)
        .replaceAll(/[^\w.:-]/g, '')
        .slice(0, 80);
    return isHolder
      ? { ...(value as Holder), host: shown(value?.host), since: shown(value?.since) }
      : undefined;
  } catch {
    return undefined;
  }
}
