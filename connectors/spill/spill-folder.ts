import { readdirSync, rmSync } from 'node:fs';
import { mkdir, readdir, rm, rmdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { CapacityError, UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { errorCode, messageOf } from '../files/file-problem.ts';
import { freeBytes } from '../output/full-disk.ts';
import { hostDigest, isRunning, startOf } from '../output/processes.ts';
import { forgetTemporary, registerTemporary } from '../output/temporaries.ts';

/**
 * "factorflow-spill-<host>-<process>-<start>-<number>": start tells a process from a later one of the same
 * number.
 */
const NAME = /^factorflow-spill-([0-9a-f]{12})-(\d+)-(\d+)-\d+$/;

let made = 0;

/**
 * A folder of this process for what memory does not hold, in the folder of the user's choice or the system's
 * for temporary files. It goes with `close`, and when the process is stopped; that of a process that was
 * killed goes when the next folder is made beside it.
 *
 */
export class SpillFolder {
  readonly #parent: string;
  readonly #given: boolean;
  #path: Promise<string> | undefined;
  /** The user's folder where it was made here. */
  #made: string | undefined;
  #files = 0;

  constructor(parent?: string) {
    this.#parent = resolve(parent ?? tmpdir());
    this.#given = parent !== undefined;
  }

  /**
   * Makes the folder, which newFile does otherwise, and the user's where it is missing. Throws UsageError for
   * one that cannot be written to.
   */
  async open(): Promise<string> {
    this.#path ??= this.#make();
    return this.#path;
  }

  /** The path of a file that does not exist yet. */
  async newFile(): Promise<string> {
    return join(await this.open(), `${this.#files++}`);
  }

  /** Throws CapacityError with both figures where the disk is known to have less room. */
  async requireRoom(bytes: number): Promise<void> {
    const path = await this.open();
    const free = await freeBytes(path);
    if (free === undefined || free >= bytes) return;
    throw new CapacityError(
      `the disk of ${this.#given ? 'spillDir' : 'the folder for temporary files'} has ${formatBytes(free)} free, and ratings that memory does not hold need up to ${formatBytes(bytes)} (${bytes} bytes) there`,
      {
        phase: 'spill',
        file: path,
        advice: 'Free some space, choose another spillDir, or raise memoryBudget',
      },
    );
  }

  async close(): Promise<void> {
    const path = await this.#path?.catch(() => undefined);
    this.#path = undefined;
    if (path === undefined) return;
    await rm(path, { recursive: true, force: true });
    forgetTemporary(path);
    // Another run may be there.
    if (this.#made !== undefined) await rmdir(this.#made).catch(() => undefined);
  }

  async #make(): Promise<string> {
    await removeLeftovers(this.#parent);
    const path = join(
      this.#parent,
      `factorflow-spill-${hostDigest()}-${process.pid}-${startOf(process.pid) ?? 0}-${made++}`,
    );
    try {
      if (this.#given && (await mkdir(this.#parent, { recursive: true })) !== undefined)
        this.#made = this.#parent;
      await mkdir(path, { mode: 0o700 });
    } catch (error) {
      throw this.#refused(error);
    }
    registerTemporary({ temporary: path });
    return path;
  }

  #refused(error: unknown): unknown {
    const code = errorCode(error);
    const reason =
      code === 'ENOENT'
        ? 'does not exist'
        : code === 'ENOTDIR' || code === 'EEXIST'
          ? 'is no folder'
          : `cannot be written to (${code ?? messageOf(error)})`;
    const name = this.#given ? 'spillDir' : 'the folder for temporary files';
    return new UsageError(`${name} ${this.#parent} ${reason}`, {
      advice: 'Give a folder that can be written to as spillDir',
      cause: error,
    });
  }
}

/**
 * Removes this process's folders in `parent` while its threads may still write there: it is about to be
 * killed.
 */
export function removeOwnSpill(parent: string = tmpdir()): void {
  try {
    for (const name of readdirSync(parent)) {
      const [, host, id] = NAME.exec(name) ?? [];
      if (host === hostDigest() && Number(id) === process.pid)
        rmSync(join(parent, name), { recursive: true, force: true, maxRetries: 3, retryDelay: 10 });
    }
  } catch {
    // The next process that makes a folder there removes what is left.
  }
}

/** Removes the folders of processes of this user and this host that are no more. */
async function removeLeftovers(parent: string): Promise<void> {
  const own = process.getuid?.();
  for (const name of await readdir(parent).catch((): string[] => [])) {
    const [, host, id, start] = NAME.exec(name) ?? [];
    if (host !== hostDigest() || isRunning(Number(id), Number(start))) continue;
    const path = join(parent, name);
    const found = await stat(path).catch(() => undefined);
    if (found?.isDirectory() && (own === undefined || found.uid === own))
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}
