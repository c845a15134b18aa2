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
 * The content of the file. Entries of other versions of the kernels are ignored, and removed by the next
 * write.
 */
interface CacheFile {
  readonly format: 'factorflow-tuned-kernels';
  /** Package version and hash of the kernels' texts. */
  readonly version: string;
  readonly entries: Readonly<Record<string, TunedVariant>>;
}

const FORMAT = 'factorflow-tuned-kernels';
/** Most bytes of the file: an entry has some hundred. */
const MOST_BYTES = 1 << 24;
const FILE = 'tuned-kernels.json';

/** Time in which any write of the file ends. */
const MOST_WRITE_MILLISECONDS = 60_000;

/**
 * Measured choices. The key of a choice contains everything that it depends on. A file that is damaged, has
 * another format or another version counts as empty and is replaced. If a write fails, the run continues and
 * prints a note.
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
   * Adds an entry; entries of other processes are kept. If the file cannot be written, returns a note with
   * the reason.
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
 * Removes temporary files of processes that were killed. These are files so much older than `own`, which is
 * new, that no write takes this time. It does not test for the process itself: that may be in another
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

/** Version in the package.json above the sources or the build. */
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
