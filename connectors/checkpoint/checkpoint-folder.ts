import { readdir, rm, rmdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CapacityError, UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { StoredNumbers } from '../../engine/row-parts.ts';
import { refuseLossyName } from '../files/dataset-path.ts';
import { folderRefused } from '../files/file-problem.ts';
import { atomicOutput } from '../output/atomic-output.ts';
import { bytesBelow, freeBytes, makeFolders } from '../output/new-file.ts';
import { FolderLock } from './folder-lock.ts';
import {
  checkedMatrices,
  isCheckpointEntry,
  readState,
  type StoredState,
  bytesOfMatrices,
  writeCheckpointFiles,
  type WrittenMatrix,
} from './read-checkpoint.ts';

const NAME = /^checkpoint-(\d{8,15})$/;
const LEFTOVER =
  /^(\.(checkpoint-\d{8,15}|lock[0-9a-f.]*)\.(tmp|old)-[0-9a-f]{12}(-\d+){3}$|lock(\.[0-9a-f]{12})+$)/;

/** Number of checkpoints to keep. */
export const KEPT = 2;

export interface StoredCheckpoint {
  readonly iteration: number;
  readonly path: string;
  readonly state: StoredState;
}

/**
 * The checkpoints of one run: folders named checkpoint-<iteration>. Each appears completely or not at all,
 * and the newest two are kept. Other files in the folder are not changed. One process at a time owns the
 * folder.
 */
export class CheckpointFolder {
  readonly path: string;
  readonly #lock: FolderLock;
  /** True if this process made the folder. */
  readonly #made: boolean;

  private constructor(path: string, lock: FolderLock, made: boolean) {
    this.path = path;
    this.#lock = lock;
    this.#made = made;
  }

  /**
   * Creates the folder if necessary, locks it, and removes unfinished output of a killed run. Throws
   * UsageError where the folder cannot be used or another run holds it.
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

  /** Iterations of the checkpoints, newest first. */
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

  /** Throws DataError for a checkpoint that is damaged or not of FactorFlow. */
  async read(iteration: number): Promise<StoredCheckpoint> {
    const path = this.pathOf(iteration);
    return { iteration, path, state: await readState(path) };
  }

  /**
   * Checks the matrices, which are then read from their files at each use. Matrices that fit into `keptBytes`
   * bytes together are kept in memory from this check to their first use, so that their files are not read
   * twice. Throws DataError for a checkpoint that is damaged, or whose matrices have other lengths.
   */
  async matrices(
    { path, state }: StoredCheckpoint,
    lengths: Readonly<Record<string, number>>,
    keptBytes = 0,
  ): Promise<Record<string, StoredNumbers>> {
    return checkedMatrices(path, state, lengths, keptBytes);
  }

  /**
   * Throws CapacityError if the disk has too little room for `checkpoints` checkpoints of `bytes` bytes each.
   */
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
   * Writes a checkpoint and gives it its name when all of it is on the disk. Then removes older checkpoints
   * than the last two, and checkpoints of later iterations. Throws CapacityError for a full disk, UsageError
   * if another run has taken the folder over, DataError.
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

  /** Keeps the last two checkpoints up to an iteration; removes older and later ones. */
  async keep(iteration: number): Promise<void> {
    const all = await this.iterations();
    const kept = all.filter((one) => one <= iteration).slice(0, KEPT);
    for (const one of all)
      if (!kept.includes(one)) await rm(this.pathOf(one), { recursive: true, force: true });
  }

  /** Releases the lock, and removes the folder if this process made it and it is empty. */
  async close(): Promise<void> {
    await this.#lock.leave();
    if (this.#made) await rmdir(this.path).catch(() => undefined);
  }
}
