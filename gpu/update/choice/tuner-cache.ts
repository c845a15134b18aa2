/** A cache of the kernels that were measured fastest: one JSON file in the user's cache folder. */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readRegular } from '../../../engine/regular-file.ts';
import { cacheFolder, makeOwnFolder, requireOwnFolder } from '../../probe/cache-folder.ts';
import { kernelTexts } from '../../generated/kernels-wgsl.ts';
import type { TunedVariant } from './choose.ts';

/**
 * The content of the file. If `version` is not the current one, all entries are ignored, and the next write
 * replaces them.
 */
interface CacheFile {
  readonly format: 'factorflow-tuned-kernels';
  /** Version of the package, and a hash of the texts of all kernels. */
  readonly version: string;
  readonly entries: Readonly<Record<string, TunedVariant>>;
}

const FORMAT = 'factorflow-tuned-kernels';
/** A larger file is not read. An entry has some hundred bytes. */
const MOST_BYTES = 1 << 24;
const FILE = 'tuned-kernels.json';

/** A temporary file that is older than this belongs to a process that was killed: a write takes far less. */
const MOST_WRITE_MILLISECONDS = 60_000;

/**
 * The measured choices on disk. The key of a choice contains everything that the choice depends on, except
 * `version`. A file that is damaged, or has another format or version, counts as empty and is replaced. If a
 * write fails, `keep` returns a note, and the run continues.
 */
export class TunerCache {
  readonly file: string;
  readonly #version: string;

  constructor(folder = cacheFolder(), version = `${packageVersion()} ${kernelHash()}`) {
    this.file = join(folder, FILE);
    this.#version = version;
  }

  async find(key: string): Promise<TunedVariant | undefined> {
    const entries = await this.#read();
    return Object.hasOwn(entries, key) ? entries[key] : undefined;
  }

  /**
   * Adds an entry and keeps the entries that the file has now, also of other processes. Returns undefined, or
   * if the file could not be written a note with the reason.
   */
  async keep(key: string, tuned: TunedVariant): Promise<string | undefined> {
    const content: CacheFile = {
      format: FORMAT,
      version: this.#version,
      entries: { ...(await this.#read()), [key]: tuned },
    };
    const unfinished = `${this.file}.${randomUUID()}`;
    try {
      makeOwnFolder(dirname(this.file));
      await writeFile(unfinished, `${JSON.stringify(content, undefined, 1)}\n`);
      await clearUnfinished(this.file, unfinished);
      await rename(unfinished, this.file);
      return undefined;
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => undefined);
      return (
        `the measured kernel could not be kept in ${this.file} ` +
        `(${error instanceof Error ? error.message : String(error)}); FACTORFLOW_CACHE_DIR names another ` +
        'folder'
      );
    }
  }

  async #read(): Promise<CacheFile['entries']> {
    try {
      requireOwnFolder(dirname(this.file));
      return entriesOf(JSON.parse(Buffer.from(readRegular(this.file, MOST_BYTES)).toString()), this.#version);
    } catch {
      return {};
    }
  }
}

/**
 * Removes temporary files of processes that were killed while they wrote. They are recognized by their age,
 * compared with the new file `own`. Looking for the process would not help, since it may be in another
 * container.
 */
async function clearUnfinished(file: string, own: string): Promise<void> {
  const { mtimeMs } = await stat(own);
  for (const name of await readdir(dirname(file))) {
    const path = join(dirname(file), name);
    if (!path.startsWith(`${file}.`) || path === own) continue;
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && mtimeMs - found.mtimeMs > MOST_WRITE_MILLISECONDS)
      await rm(path, { force: true });
  }
}

function entriesOf(content: unknown, version: string): CacheFile['entries'] {
  const file = content as Partial<CacheFile> | null;
  if (
    typeof file !== 'object' ||
    file?.format !== FORMAT ||
    file.version !== version ||
    typeof file.entries !== 'object' ||
    file.entries === null
  )
    return {};
  return Object.fromEntries(Object.entries(file.entries).filter(([, entry]) => isTuned(entry)));
}

function isTuned(entry: unknown): boolean {
  const { variant, reason } = (entry ?? {}) as Partial<TunedVariant>;
  return typeof variant === 'string' && typeof reason === 'string';
}

function kernelHash(): string {
  return createHash('sha256').update(JSON.stringify(kernelTexts)).digest('hex').slice(0, 16);
}

/** The package's version, from the nearest package.json above the sources or the build. */
function packageVersion(): string {
  for (
    let folder = dirname(fileURLToPath(import.meta.url));
    folder !== dirname(folder);
    folder = dirname(folder)
  ) {
    const file = join(folder, 'package.json');
    if (existsSync(file))
      return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
  }
  return 'unknown';
}
