import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CancelledError } from '../../engine/errors.ts';
import { reportError } from '../report/report-error.ts';
import type { AddedRows } from './added-rows.ts';
import type { LoadedModel, ServedModels } from './loaded-model.ts';
import type { Metrics } from './metrics.ts';

/** Loads tried in a row when the folder changes during a load. */
const MOST_ATTEMPTS = 3;

export interface ReloadingOptions {
  readonly folder: string;
  /** Time between two looks at the folder; 0 for none. */
  readonly pollMilliseconds: number;
  readonly load: (added: AddedRows) => Promise<LoadedModel>;
  readonly metrics: Metrics;
  readonly note: (text: string) => void;
  readonly warn: (text: string) => void;
}

/**
 * Loads the model again when its folder has changed, and exchanges it under running requests. A model that
 * cannot be loaded changes nothing: the old one answers on, and a warning and a metric report it. The folder
 * must be the same at two looks in a row, so that a copy under way is not loaded half.
 */
export class Reloading {
  readonly #models: ServedModels;
  readonly #options: ReloadingOptions;
  /** The state of the folder that was loaded, or failed to load. */
  #handled: string | undefined;
  #last: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  #closed = false;

  /** `state`: the folder's state before the current model was loaded. */
  constructor(models: ServedModels, state: string | undefined, options: ReloadingOptions) {
    [this.#models, this.#options] = [models, options];
    this.#handled = state;
    this.#last = state;
    this.#schedule();
  }

  /** Loads now, also if the folder is unchanged. A call during a load starts another load after it. */
  reload(): Promise<void> {
    if (this.#running !== undefined) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#loadAll().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Looks at the folder once, and loads it if it has changed and rests. */
  async look(): Promise<void> {
    const state = await folderState(this.#options.folder);
    const rests = state !== undefined && state === this.#last;
    this.#last = state;
    if (rests && state !== this.#handled && !this.#closed) await this.reload();
  }

  /** Ends the polling; waits for a load that is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(): void {
    const { pollMilliseconds } = this.#options;
    if (pollMilliseconds === 0 || this.#closed) return;
    this.#timer = setTimeout(() => void this.look().finally(() => this.#schedule()), pollMilliseconds);
  }

  async #loadAll(): Promise<void> {
    do {
      this.#again = false;
      await this.#load();
    } while (this.#again && !this.#closed);
  }

  async #load(): Promise<void> {
    const { folder, load, metrics, note, warn } = this.#options;
    const start = performance.now();
    for (let attempt = 1; ; attempt++) {
      const state = await folderState(folder);
      this.#handled = state;
      try {
        const rests = async () => (await folderState(folder)) === state || attempt >= MOST_ATTEMPTS;
        const loaded = await this.#models.reload(load, rests);
        if (loaded === undefined) continue;
        metrics.reloaded('ok');
        const seconds = ((performance.now() - start) / 1000).toFixed(2);
        note(`loaded ${folder} again in ${seconds} s: model ${loaded.version}`);
        return;
      } catch (error) {
        if (error instanceof CancelledError || this.#closed) return;
        if ((await folderState(folder)) !== state && attempt < MOST_ATTEMPTS) continue;
        metrics.reloaded('failed');
        warn(`${reportError(error).message}; the model ${this.#models.current.version} answers on`);
        return;
      }
    }
  }
}

/**
 * A text that changes when a file of a folder is replaced, added or removed: names, sizes, times and inodes
 * of all files. Undefined while the folder is missing, as between the two renames of a replacement.
 */
export async function folderState(folder: string): Promise<string | undefined> {
  try {
    const names = (await readdir(folder, { recursive: true })).sort();
    const hash = createHash('sha256');
    for (const name of names) {
      const { ino, size, mtimeNs } = await stat(join(folder, name), { bigint: true });
      hash.update(`${name}\0${ino}\0${size}\0${mtimeNs}\0`);
    }
    return hash.digest('hex');
  } catch {
    // A file that is removed in between: the next look will show another state.
    return undefined;
  }
}
