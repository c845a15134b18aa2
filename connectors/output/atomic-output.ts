import type { Dirent } from 'node:fs';
import { mkdir, open, readdir, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { DataError, deserializeError, FactorFlowError, UsageError } from '../../engine/errors.ts';
import { errorCode, fileProblem } from '../files/file-problem.ts';
import { forgetTemporary, recoverOutput, registerTemporary, siblingName } from './temporaries.ts';

export interface AtomicOutputOptions {
  readonly kind: 'file' | 'folder';
  /** Replace what is there already; otherwise existing output is an error. */
  readonly overwrite?: boolean;
  /**
   * Whether an entry of an existing folder (its path inside it, with "/") is something that this kind of output has.
   * A folder with anything else is never replaced.
   */
  readonly recognizes: (path: string) => boolean;
  /** Wait until the bytes are on the disk before the new output takes the old one's place. */
  readonly durable?: boolean;
}

/** How often another process may get in between. */
const mostAttempts = 100;

/** Output that appears whole or not at all. `commit` ends it; where that or anything before fails, `discard` or `fail`. */
export interface AtomicOutput {
  /** Write here: a folder that exists and is empty, or the name of a file that does not exist yet. */
  readonly temporary: string;
  /** Puts the temporary in the target's place; until then the old output stays as it was. */
  commit(): Promise<void>;
  /** Removes the temporary and any parent folders made for it. */
  discard(): Promise<void>;
  /** Discards, and gives the failure to be thrown: it names the target where it named the temporary. */
  fail(error: unknown): Promise<unknown>;
}

/**
 * Throws UsageError when `target` may not be written: it exists and `overwrite` is not set, or it is no output of this kind
 * (a folder with foreign files, the home folder, a parent of the working folder). An old output that a process which died
 * had moved aside counts: it comes back first.
 */
export async function checkOutput(target: string, options: AtomicOutputOptions): Promise<void> {
  await recoverOutput(await realPath(target));
  await check(resolve(target), target, options);
}

async function check(path: string, name: string, options: AtomicOutputOptions): Promise<void> {
  const fail = (summary: string, advice: string) => new UsageError(summary, { phase: 'write', file: name, advice });
  const kind = await kindOf(path);
  if (kind === undefined) return;
  if (kind !== options.kind) throw fail(`the output exists and is a ${kind}, not a ${options.kind}`, 'Choose another output');
  const empty = kind === 'folder' && (await entriesOf(path)).length === 0;
  if (!empty && !options.overwrite) throw fail('the output exists already', 'Choose another output, or pass --force (overwrite: true) to replace it');
  if (kind === 'file') return;
  if (holdsWork(path)) throw fail('the folder is not replaced: it is or holds your home or working folder', 'Choose another output');
  const foreign = await foreignEntry(path, '', options.recognizes);
  if (foreign !== undefined) throw fail(`the folder is not replaced: it holds "${foreign}", which is no output of this kind`, 'Choose another output');
}

function holdsWork(path: string): boolean {
  const folder = path.endsWith(sep) ? path : path + sep;
  return [homedir(), process.cwd()].some((work) => `${resolve(work)}${sep}`.startsWith(folder));
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/** The first entry below that `recognizes` does not know, as a path with "/"; folders end with "/". Those that vanish meanwhile have none. */
async function foreignEntry(folder: string, prefix: string, recognizes: (path: string) => boolean): Promise<string | undefined> {
  for (const entry of await entriesOf(folder)) {
    const path = `${prefix}${entry.name}${entry.isDirectory() ? '/' : ''}`;
    if (!recognizes(path)) return path;
    const below = entry.isDirectory() ? await foreignEntry(join(folder, entry.name), path, recognizes) : undefined;
    if (below !== undefined) return below;
  }
  return undefined;
}

/** Checks the target, clears what dead processes left beside it, and makes the temporary. */
export async function atomicOutput(target: string, options: AtomicOutputOptions): Promise<AtomicOutput> {
  const path = await realPath(target);
  const parent = dirname(path);
  let made: string | undefined;
  try {
    made = await mkdir(parent, { recursive: true });
    await recoverOutput(path);
    await check(path, target, options);
    const temporary = siblingName(path, 'tmp');
    registerTemporary({ temporary });
    if (options.kind === 'folder') await mkdir(temporary);
    return new PendingOutput(path, target, temporary, made, options);
  } catch (error) {
    await removeMade(parent, made);
    throw fileProblem(error, 'write', target);
  }
}

/** The place itself where links lead to it. */
async function realPath(target: string): Promise<string> {
  return realpath(target).catch(() => resolve(target));
}

class PendingOutput implements AtomicOutput {
  readonly temporary: string;
  private readonly target: string;
  /** The target as the caller wrote it. */
  private readonly name: string;
  private readonly made: string | undefined;
  private readonly options: AtomicOutputOptions;

  constructor(target: string, name: string, temporary: string, made: string | undefined, options: AtomicOutputOptions) {
    this.target = target;
    this.name = name;
    this.temporary = temporary;
    this.made = made;
    this.options = options;
  }

  async commit(): Promise<void> {
    try {
      if (this.options.durable) await syncAll(this.temporary);
      for (let attempt = 1; !(await this.place()); attempt++) {
        if (attempt === mostAttempts) throw new DataError('the output is being replaced by others all the time', { phase: 'write', file: this.name, advice: 'Let one process at a time write there' });
      }
      forgetTemporary(this.temporary);
      if (this.options.durable) await sync(dirname(this.target));
    } catch (error) {
      throw fileProblem(error, 'write', this.name);
    }
  }

  async discard(): Promise<void> {
    await rm(this.temporary, { recursive: true, force: true });
    forgetTemporary(this.temporary);
    await removeMade(dirname(this.target), this.made);
  }

  async fail(error: unknown): Promise<unknown> {
    // What is left now goes with the next output to this place; the first failure is the one to tell.
    await this.discard().catch(() => undefined);
    const problem = fileProblem(error, 'write', this.name);
    if (!(problem instanceof FactorFlowError) || !problem.message.includes(this.temporary)) return problem;
    const inPlace = (text: string) => text.replaceAll(this.temporary, this.name);
    const details = { ...problem.details, file: problem.details.file && inPlace(problem.details.file) };
    return deserializeError({ name: problem.name, message: inPlace(problem.message), summary: inPlace(problem.summary), details });
  }

  /**
   * Old aside, new in, old away. A process that dies in between leaves the old one aside, and recoverOutput brings it back.
   * False when another process changed the target meanwhile: what it put there is looked at anew.
   */
  private async place(): Promise<boolean> {
    await check(this.target, this.name, this.options);
    const replaces = this.options.kind === 'folder' && (await kindOf(this.target)) === 'folder';
    const old = replaces ? siblingName(this.target, 'old') : undefined;
    if (old !== undefined) {
      registerTemporary({ temporary: old, restoreTo: this.target });
      if (!(await renamed(this.target, old, ['ENOENT']))) {
        forgetTemporary(old);
        return false;
      }
    }
    const placed = await renamed(this.temporary, this.target, ['ENOTEMPTY', 'EEXIST']).catch(async (error: unknown) => {
      if (old !== undefined && (await renamed(old, this.target, ['ENOTEMPTY', 'EEXIST']))) forgetTemporary(old);
      throw error;
    });
    if (old !== undefined) {
      await rm(old, { recursive: true, force: true });
      forgetTemporary(old);
    }
    return placed;
  }
}

/** False for the failures that another process at work explains. */
async function renamed(from: string, to: string, explained: readonly string[]): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (explained.includes(errorCode(error) ?? '')) return false;
    throw error;
  }
}

async function kindOf(path: string): Promise<'file' | 'folder' | undefined> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function removeMade(parent: string, made: string | undefined): Promise<void> {
  if (made === undefined) return;
  for (let folder = parent; folder.startsWith(made); folder = dirname(folder)) {
    if (!(await rmdir(folder).then(() => true, () => false))) return;
  }
}

async function syncAll(path: string): Promise<void> {
  if ((await kindOf(path)) === 'folder') {
    for (const name of await readdir(path)) await syncAll(join(path, name));
  }
  await sync(path);
}

async function sync(path: string): Promise<void> {
  // Folders cannot be opened everywhere; the files' own bytes are what matters.
  const handle = await open(path, 'r').catch(() => undefined);
  if (handle === undefined) return;
  try {
    await handle.sync().catch((error: unknown) => {
      if (!['EPERM', 'EINVAL', 'EISDIR', 'EBADF'].includes(errorCode(error) ?? '')) throw error;
    });
  } finally {
    await handle.close();
  }
}
