import { readdir, rm, rmdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CapacityError, UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { folderRefused } from '../files/file-problem.ts';
import { refuseLossyName } from '../files/lossy-name.ts';
import { atomicOutput } from '../output/atomic-output.ts';
import { makeFolders } from '../output/new-file.ts';
import { bytesBelow, freeBytes } from '../output/full-disk.ts';
import {
  bytesOfMatrices,
  isCheckpointEntry,
  readMatrices,
  readState,
  type StoredState,
  writeCheckpointFiles,
  type WrittenMatrix,
} from './checkpoint-files.ts';
import { FolderLock } from './folder-lock.ts';

const NAME = /^checkpoint-(\d{8,15})$/;
const LEFTOVER =
  /^(\.(checkpoint-\d{8,15}|lock[0-9a-f.]*)\.(tmp|old)-[0-9a-f]{12}(-\d+){3}$|lock(\.[0-9a-f]{12})+$)/;

/** Checkpoints that are kept. */
export const KEPT = 2;

export interface StoredCheckpoint {
  readonly iteration: number;
  readonly path: string;
  readonly state: StoredState;
}

/**
 * The checkpoints of one run: folders checkpoint-<iteration> of which each appears whole or not at all, the
 * newest two of them. Other files of the folder are left alone. The folder belongs to one process at a time.
 *
 */
export class CheckpointFolder {
  readonly path: string;
  readonly #lock: FolderLock;
  /** Set where the folder was made here. */
  readonly #made: boolean;

  private constructor(path: string, lock: FolderLock, made: boolean) {
    this.path = path;
    this.#lock = lock;
    this.#made = made;
  }

  /**
   * Makes and takes the folder, and clears what a killed run has left. Throws UsageError where that cannot
   * be, or another run has it.
   */
  static async open(folder: string): Promise<CheckpointFolder> {
    const path = resolve(folder);
    try {
      refuseLossyName(folder, 'write');
      const made = (await makeFolders(path)) !== undefined;
      const taken = new CheckpointFolder(folder, await FolderLock.take(path), made);
      try {
        for (const name of await readdir(path))
          if (LEFTOVER.test(name)) await rm(join(path, name), { recursive: true, force: true });
        return taken;
      } catch (error) {
        await taken.close();
        throw error;
      }
    } catch (error) {
      if (error instanceof UsageError) throw error;
      throw folderRefused(`checkpointDir ${folder}`, 'Give a folder that can be written to', error);
    }
  }

  /** The iterations of the checkpoints, the newest first. */
  async iterations(): Promise<number[]> {
    const entries = await readdir(this.path, { withFileTypes: true });
    return entries
      .flatMap((entry) => (entry.isDirectory() ? [Number(NAME.exec(entry.name)?.[1] ?? Number.NaN)] : []))
      .filter(Number.isSafeInteger)
      .sort((left, right) => right - left);
  }

  pathOf(iteration: number): string {
    return join(this.path, `checkpoint-${String(iteration).padStart(8, '0')}`);
  }

  /** Throws DataError for a checkpoint that is damaged or foreign. */
  async read(iteration: number): Promise<StoredCheckpoint> {
    const path = this.pathOf(iteration);
    return { iteration, path, state: await readState(path) };
  }

  /**
   * Throws DataError for a checkpoint that is damaged, and for one whose matrices have other lengths than
   * these.
   */
  async matrices(
    { path, state }: StoredCheckpoint,
    lengths: Readonly<Record<string, number>>,
  ): Promise<Record<string, Float32Array>> {
    return readMatrices(path, state, lengths);
  }

  /** Throws CapacityError where the disk has no room for so many checkpoints of so many bytes. */
  async requireRoom(bytes: number, checkpoints: number): Promise<void> {
    const free = await freeBytes(resolve(this.path));
    const need = bytes * Math.min(checkpoints, KEPT + 1) - (await bytesBelow(this.path));
    if (free === undefined || need <= free) return;
    throw new CapacityError(`checkpoints need ${formatBytes(need)} more, and ${formatBytes(free)} are free`, {
      phase: 'plan',
      file: this.path,
      advice: 'Free some space, or give another checkpointDir',
    });
  }

  /**
   * Writes a checkpoint, which has its name once all of it is on the disk, and removes those before the last
   * two and those beyond it. Throws CapacityError for a full disk, UsageError where the folder is no longer
   * this run's, DataError.
   *
   */
  async write(
    iteration: number,
    state: JsonObject,
    matrices: Readonly<Record<string, WrittenMatrix>>,
  ): Promise<void> {
    await this.#lock.requireHeld();
    const output = await atomicOutput(this.pathOf(iteration), {
      kind: 'folder',
      overwrite: true,
      recognizes: isCheckpointEntry,
      durable: true,
    });
    try {
      await writeCheckpointFiles(output.temporary, iteration, state, matrices);
      await output.commit();
    } catch (error) {
      throw await output.fail(error, bytesOfMatrices(matrices));
    }
    await this.keep(iteration);
  }

  /** Removes the checkpoints beyond an iteration, and those before the last two up to it. */
  async keep(iteration: number): Promise<void> {
    const all = await this.iterations();
    const kept = all.filter((one) => one <= iteration).slice(0, KEPT);
    for (const one of all)
      if (!kept.includes(one)) await rm(this.pathOf(one), { recursive: true, force: true });
  }

  /** Gives the folder back; one that was made here and is empty goes. */
  async close(): Promise<void> {
    await this.#lock.leave();
    if (this.#made) await rmdir(this.path).catch(() => undefined);
  }
}
