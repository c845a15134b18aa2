import { readdirSync, rmSync } from 'node:fs';
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { refuseLossyName } from '../files/dataset-path.ts';
import { folderRefused } from '../files/file-problem.ts';
import { makeFolders, freeBytes } from '../output/new-file.ts';
import { madeBeside, ownOwner, recoverOutput, Temporary } from '../output/temporaries.ts';

/** Prefix of the folders' names. */
const NAME = 'factorflow-spill';

/**
 * A folder of this process for data that does not fit in memory, inside the user's spill folder or the
 * system's folder for temporary files. It is removed by `close`, and when the process is stopped. After a
 * kill, the next process that makes a folder there removes it.
 */
export class SpillFolder {
  readonly #parent: string;
  readonly #given: boolean;
  #own: Promise<Temporary> | undefined;
  /** The user's folder, if this object created it. */
  #made: string | undefined;
  #files = 0;

  constructor(parent?: string) {
    this.#parent = resolve(parent ?? tmpdir());
    this.#given = parent !== undefined;
  }

  /**
   * Creates the folder (newFile does so on demand), and the user's folder if it is missing. Throws UsageError
   * if it cannot be written to.
   */
  async open(): Promise<string> {
    this.#own ??= this.#make();
    return (await this.#own).path;
  }

  /** Path of a new file. */
  async newFile(): Promise<string> {
    return join(await this.open(), `${this.#files++}`);
  }

  /**
   * Throws CapacityError with both figures if the disk is known to have less free space. For 0 bytes it does
   * nothing: a run that needs no files makes no folder.
   */
  async requireRoom(bytes: number): Promise<void> {
    if (bytes === 0) return;
    const path = await this.open();
    const free = await freeBytes(path);
    if (free === undefined || free >= bytes) return;
    throw new CapacityError(
      `the disk of ${this.#given ? 'spillDir' : 'the folder for temporary files'} has ${formatBytes(free)} free, and data that memory does not hold need up to ${formatBytes(bytes)} (${bytes} bytes) there`,
      {
        phase: 'spill',
        file: path,
        advice: 'Free some space, choose another spillDir, or raise memoryBudget',
      },
    );
  }

  async close(): Promise<void> {
    const own = await this.#own?.catch(() => undefined);
    this.#own = undefined;
    if (own === undefined) return;
    await rm(own.path, { recursive: true, force: true });
    own.forget();
    // Fails harmlessly if another run still uses it.
    if (this.#made !== undefined) await rmdir(this.#made).catch(() => undefined);
  }

  async #make(): Promise<Temporary> {
    refuseLossyName(this.#parent, 'spill');
    const name = join(this.#parent, NAME);
    await recoverOutput(name);
    const own = Temporary.beside(name);
    try {
      if (this.#given && (await makeFolders(this.#parent)) !== undefined) this.#made = this.#parent;
      await mkdir(own.path, { mode: 0o700 });
      return own;
    } catch (error) {
      own.forget();
      throw folderRefused(
        `${this.#given ? 'spillDir' : 'the folder for temporary files'} ${this.#parent}`,
        'Give a folder that can be written to as spillDir',
        error,
      );
    }
  }
}

/**
 * Removes this process's folders in `parent` just before the process is killed. Its threads may still be
 * writing there.
 */
export function removeOwnSpill(parent: string = tmpdir()): void {
  try {
    const own = JSON.stringify(ownOwner());
    for (const { path, owner } of madeBeside(join(parent, NAME), readdirSync(parent)))
      if (JSON.stringify(owner) === own)
        rmSync(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 10 });
  } catch {
    // The next process that makes a folder there removes the rest.
  }
}
