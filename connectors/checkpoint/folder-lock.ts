import { link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import { errorCode } from '../files/file-problem.ts';
import { createFile, syncHandle } from '../output/new-file.ts';
import { hostDigest, isRunning, startOf } from '../output/processes.ts';
import { forgetTemporary, registerTemporary, siblingName } from '../output/temporaries.ts';

const NAME = 'lock';

/** Time between two signs of life of a holder, and the time without one after which a holder on another machine counts as ended. */
const BEAT_MILLISECONDS = 10_000;
const SILENT_MILLISECONDS = 60_000;

/** Most times that other processes may take or leave the lock between two looks at it. */
const MOST_ATTEMPTS = 100;

/** The process that holds a folder: one JSON line of the lock file, whose time of change is that of its last sign of life. */
interface Holder {
  readonly process: number;
  /** By `startOf`; tells the process from a later one of the same number. */
  readonly start: number;
  readonly host: string;
  /** By `hostDigest`. */
  readonly machine: string;
  readonly since: string;
}

/**
 * Keeps a folder for one process at a time, by the file `lock` in it. That of a process that was killed is taken over: at once on the same machine, and after a
 * minute without a sign of life where the process cannot be looked for, in another container or on another host.
 */
export class FolderLock {
  readonly #file: string;
  readonly #text: string;
  readonly #beat: NodeJS.Timeout;

  private constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
    registerTemporary({ temporary: file });
    this.#beat = setInterval(() => void utimes(file, new Date(), new Date()).catch(() => undefined), BEAT_MILLISECONDS).unref();
  }

  /** Throws UsageError that names the holder. */
  static async take(folder: string): Promise<FolderLock> {
    const file = join(folder, NAME);
    const holder: Holder = { process: process.pid, start: startOf(process.pid) ?? 0, host: hostname(), machine: hostDigest(), since: new Date().toISOString() };
    const text = `${JSON.stringify(holder)}\n`;
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const written = await place(file, text);
      if (written === undefined) return new FolderLock(file, text);
      const found = await readFile(file, 'utf8').catch(() => undefined);
      if (found === undefined) continue;
      await requireEnded(file, found, written);
      await removeStale(file, found);
    }
    throw new UsageError('other processes keep taking the folder', { file: folder, advice: 'Let one run at a time use it' });
  }

  async leave(): Promise<void> {
    clearInterval(this.#beat);
    const own = (await readFile(this.#file, 'utf8').catch(() => undefined)) === this.#text;
    forgetTemporary(this.#file);
    if (own) await rm(this.#file, { force: true });
  }
}

/** Puts the lock there, whole from its first moment. Gives nothing, or the file system's present time where there is a lock. */
async function place(file: string, text: string): Promise<number | undefined> {
  const draft = siblingName(file, 'tmp');
  registerTemporary({ temporary: draft });
  const handle = await createFile(draft);
  try {
    await handle.write(text);
    await syncHandle(handle);
    const { mtimeMs } = await handle.stat();
    const taken = (error: unknown) => {
      if (errorCode(error) === 'EEXIST') return true;
      throw error;
    };
    // Some file systems have no second names.
    const failed = await link(draft, file).then(() => false, (error: unknown) => errorCode(error) === 'EEXIST' || writeFile(file, text, { flag: 'wx' }).then(() => false, taken));
    return failed ? mtimeMs : undefined;
  } finally {
    await handle.close();
    await rm(draft, { force: true });
    forgetTemporary(draft);
  }
}

async function requireEnded(file: string, text: string, now: number): Promise<void> {
  const holder = parse(text);
  if (holder === undefined) throw new UsageError('the lock of the folder cannot be read', { file, advice: 'Remove it where no run uses the folder' });
  const here = holder.machine === hostDigest();
  if (here && !isRunning(holder.process, holder.start)) return;
  const beat = (await stat(file).catch(() => undefined))?.mtimeMs ?? 0;
  if (!here && now - beat > SILENT_MILLISECONDS) return;
  const place = here ? 'this machine' : `${holder.host}, where it was seen ${Math.max(0, Math.round((now - beat) / 1000))} s ago`;
  const later = here ? '' : `; a run that was killed there is replaced after ${SILENT_MILLISECONDS / 1000} s`;
  throw new UsageError(`the folder is in use by process ${holder.process} on ${place}, since ${holder.since}`, { file, advice: `Wait until it has ended, or give another folder${later}` });
}

function parse(text: string): Holder | undefined {
  try {
    const value = JSON.parse(text) as Partial<Holder> | null;
    const isHolder = Number.isSafeInteger(value?.process) && Number(value?.process) > 0 && Number.isFinite(value?.start) && typeof value?.machine === 'string';
    const shown = (name: unknown) => String(name).replaceAll(/[^\w.:-]/g, '').slice(0, 80);
    return isHolder ? { ...(value as Holder), host: shown(value?.host), since: shown(value?.since) } : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the lock that was read. One that another process has put there meanwhile goes back. */
async function removeStale(file: string, text: string): Promise<void> {
  const aside = siblingName(file, 'old');
  if (!(await rename(file, aside).then(() => true, () => false))) return;
  if ((await readFile(aside, 'utf8').catch(() => text)) !== text) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
}
