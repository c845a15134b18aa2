import { type Dirent, existsSync, lstatSync } from 'node:fs';
import { mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { DataError, deserializeError, FactorFlowError, UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { refuseLossyName } from '../files/dataset-path.ts';
import { errorCode, fileProblem } from '../files/file-problem.ts';
import { refuseAddress, isUrl, requirePath } from '../files/path-kinds.ts';
import { bytesBelow, diskFull, freeBytes, isDiskFull, makeFolders, syncAll, syncPath } from './new-file.ts';
import { realPath, recoverOutput, Temporary, touch } from './temporaries.ts';

export interface AtomicOutputOptions {
  readonly kind: 'file' | 'folder';
  /** Replaces existing output, which is an error otherwise. */
  readonly overwrite?: boolean;
  /**
   * True for an entry of an existing folder (its path inside the folder, with "/") that this kind of output
   * may have. A folder with any other entry is never replaced.
   */
  readonly recognizes: (path: string) => boolean;
  /** Waits until the bytes are on the disk before the new output replaces the old one. */
  readonly durable?: boolean;
}

/** Most retries when another process changes the target between the check and the rename. */
const MOST_ATTEMPTS = 100;

/**
 * Throws UsageError if `target` must not be written: it exists and `overwrite` is not set, or it is not an
 * output of this kind (a folder with other files, the home folder, a parent of the working folder, a device,
 * a pipe, a part of a model). If a process died after moving the old output aside, it is moved back first, so
 * that it counts as existing.
 */
export async function checkOutput(target: string, options: AtomicOutputOptions): Promise<void> {
  await recoverOutput(await realPath(target));
  await check(resolve(target), target, options);
}

async function check(path: string, name: string, options: AtomicOutputOptions): Promise<void> {
  const fail = (summary: string, advice: string) =>
    new UsageError(summary, { phase: 'write', file: name, advice });
  if (isUrl(name)) throw fail('nothing is written to a web server', 'Name a file or folder');
  refuseAddress(name, 'write');
  refuseLossyName(name, 'write');
  const kind = await kindOf(path);
  const model = await partOfModel(path);
  if (model !== undefined)
    throw fail(`the output would be inside a model: ${model}`, 'Choose another output');
  if (kind === undefined) return;
  if (kind !== 'file' && kind !== 'folder')
    throw fail(
      `the output is a ${kind}, which is never replaced`,
      'Choose another output, or write to stdout ("-") and redirect it',
    );
  if (kind !== options.kind)
    throw fail(`the output exists and is a ${kind}, not a ${options.kind}`, 'Choose another output');
  const empty = kind === 'folder' && (await entriesOf(path)).length === 0;
  if (!empty && !options.overwrite)
    throw fail('the output exists already', 'Choose another output, or pass overwrite: true to replace it');
  if (kind === 'file') return;
  if (holdsWork(path))
    throw fail(
      'the folder is not replaced: it is or holds your home or working folder',
      'Choose another output',
    );
  const foreign = await foreignEntry(path, '', options.recognizes);
  if (foreign !== undefined)
    throw fail(
      `the folder is not replaced: it holds "${foreign}", which does not belong to this kind of output`,
      'Choose another output',
    );
}

function holdsWork(path: string): boolean {
  const folder = path.endsWith(sep) ? path : path + sep;
  return [homedir(), workingFolder()].some((work) => `${work}${sep}`.startsWith(folder));
}

/** Empty if the folder was removed. */
function workingFolder(): string {
  try {
    return process.cwd();
  } catch {
    return '';
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/**
 * The first entry below a folder that `recognizes` refuses, or that is a device, a pipe or a socket, as a
 * path with "/"; folders end with "/". Undefined if the folder disappears meanwhile.
 */
async function foreignEntry(
  folder: string,
  prefix: string,
  recognizes: (path: string) => boolean,
): Promise<string | undefined> {
  for (const entry of await entriesOf(folder)) {
    const path = `${prefix}${entry.name}${entry.isDirectory() ? '/' : ''}`;
    if (!recognizes(path) || !(entry.isFile() || entry.isDirectory() || entry.isSymbolicLink())) return path;
    const below = entry.isDirectory()
      ? await foreignEntry(join(folder, entry.name), path, recognizes)
      : undefined;
    if (below !== undefined) return below;
  }
  return undefined;
}

/** Checks the target, removes leftovers of dead processes next to it, and makes the temporary. */
export async function atomicOutput(target: string, options: AtomicOutputOptions): Promise<AtomicOutput> {
  requirePath(target, 'write');
  const path = await realPath(target);
  const parent = dirname(path);
  let made: string | undefined;
  try {
    refuseLossyName(target, 'write');
    if (path !== resolve(target) && !existsSync(parent) && isLink(target))
      throw new UsageError(`the output is a link to ${path}, whose folder does not exist`, {
        phase: 'write',
        file: target,
        advice: 'Make the folder, or remove the link',
      });
    made = await makeFolders(parent);
    await recoverOutput(path);
    await check(path, target, options);
    const temporary = Temporary.beside(path);
    if (options.kind === 'folder') await mkdir(temporary.path);
    return new AtomicOutput({ path, name: target, made }, temporary, options);
  } catch (error) {
    await removeMade(parent, made);
    throw fileProblem(error, 'write', target);
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

interface Place {
  readonly path: string;
  /** The path as the caller wrote it. */
  readonly name: string;
  /** The first parent folder that was made for the output. */
  readonly made: string | undefined;
}

/**
 * Output that appears completely or not at all. Ends with `commit`; if something fails, also `commit` itself,
 * with `discard` or `fail`.
 */
export class AtomicOutput {
  /** Write here: an empty folder, or the name of a file that does not exist yet. */
  readonly temporary: string;
  readonly #own: Temporary;
  readonly #to: Place;
  readonly #options: AtomicOutputOptions;

  constructor(to: Place, own: Temporary, options: AtomicOutputOptions) {
    [this.#to, this.#own, this.#options] = [to, own, options];
    this.temporary = own.path;
  }

  /** Moves the temporary to the target's place; the old output is kept until then. */
  async commit(): Promise<void> {
    try {
      if (this.#options.durable) await syncAll(this.temporary);
      for (let attempt = 1; !(await this.#place()); attempt++) {
        if (attempt === MOST_ATTEMPTS)
          throw new DataError('other processes keep replacing the output', {
            phase: 'write',
            file: this.#to.name,
            advice: 'Let one process at a time write there',
          });
      }
      this.#own.forget();
      if (this.#options.durable) await syncPath(dirname(this.#to.path));
    } catch (error) {
      throw fileProblem(error, 'write', this.#to.name);
    }
  }

  /** Removes the temporary, and parent folders that were made for it. */
  async discard(): Promise<void> {
    await rm(this.temporary, { recursive: true, force: true });
    this.#own.forget();
    await removeMade(dirname(this.#to.path), this.#to.made);
  }

  /**
   * Discards the output and returns the error to throw. The error names the target, not the temporary. For a
   * full disk it states the size of the output: `needed` bytes, or "more than" the bytes written so far.
   */
  async fail(error: unknown, needed?: number): Promise<unknown> {
    const problem = fileProblem(error, 'write', this.#to.name);
    const full =
      isDiskFull(problem) &&
      (needed === undefined
        ? `more than ${formatBytes(await bytesBelow(this.temporary))}`
        : formatBytes(needed));
    // If the temporary cannot be removed, the next output to this target removes it; the first error is
    // reported, not this one.
    await this.discard().catch(() => undefined);
    if (full) return diskFull(problem, this.#to.name, full, await freeBytes(dirname(this.#to.path)));
    if (!(problem instanceof FactorFlowError) || !problem.message.includes(this.temporary)) return problem;
    const inPlace = (text: string) => text.replaceAll(this.temporary, this.#to.name);
    const details = { ...problem.details, file: problem.details.file && inPlace(problem.details.file) };
    return deserializeError({
      name: problem.name,
      message: inPlace(problem.message),
      summary: inPlace(problem.summary),
      details,
    });
  }

  /**
   * Moves the old output aside, moves the new one into its place, and removes the old one. If the process
   * dies in between, recoverOutput moves the old one back. False if another process changed the target
   * meanwhile; then it must be checked again.
   */
  async #place(): Promise<boolean> {
    await check(this.#to.path, this.#to.name, this.#options);
    const replaces = this.#options.kind === 'folder' && (await kindOf(this.#to.path)) === 'folder';
    const old = replaces ? Temporary.aside(this.#to.path) : undefined;
    if (old !== undefined) {
      // While it is aside, the old output must not look abandoned by a dead process, so it gets the present
      // time.
      await touch(this.#to.path).catch(() => undefined);
      if (!(await renamed(this.#to.path, old.path, ['ENOENT']))) {
        old.forget();
        return false;
      }
    }
    const placed = await renamed(this.temporary, this.#to.path, ['ENOTEMPTY', 'EEXIST']).catch(
      async (error: unknown) => {
        if (old && (await renamed(old.path, this.#to.path, ['ENOENT', 'ENOTEMPTY', 'EEXIST']))) old.forget();
        throw error;
      },
    );
    if (old !== undefined) {
      await rm(old.path, { recursive: true, force: true });
      old.forget();
    }
    return placed;
  }
}

/**
 * Renames a path. Returns false if it fails with one of the codes `explained`, which occur when another
 * process changes the target.
 */
async function renamed(from: string, to: string, explained: readonly string[]): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (explained.includes(errorCode(error) ?? '')) return false;
    throw error;
  }
}

async function kindOf(path: string): Promise<'file' | 'folder' | 'pipe' | 'socket' | 'device' | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return 'folder';
    return found.isFile() ? 'file' : found.isFIFO() ? 'pipe' : found.isSocket() ? 'socket' : 'device';
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function removeMade(parent: string, made: string | undefined): Promise<void> {
  if (made === undefined) return;
  for (let folder = parent; folder.startsWith(made); folder = dirname(folder)) {
    if (
      !(await rmdir(folder).then(
        () => true,
        () => false,
      ))
    )
      return;
  }
}

/** Folders of every model, with part files directly inside. */
const folders = ['metadata', 'userFactors', 'itemFactors'];

/** The model that contains a path, as one of its folders or a file in them; undefined for other paths. */
async function partOfModel(path: string): Promise<string | undefined> {
  for (const folder of [dirname(path), dirname(dirname(path))]) {
    const entries = await readdir(folder).catch((): string[] => []);
    if (folders.every((name) => entries.includes(name))) return folder;
  }
  return undefined;
}
