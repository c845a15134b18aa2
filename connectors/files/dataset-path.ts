import { type Dirent, existsSync } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { DataError, UsageError } from '../../engine/errors.ts';
import { isLossy } from '../../engine/lossy-path.ts';
import { compressionOf } from '../compression/compressions.ts';
import {
  type FolderColumns,
  type PartitionColumn,
  partitionColumns,
  partitionsOf,
  type PartitionValues,
} from '../folders/folder-columns.ts';
import { recoverInput } from '../output/temporaries.ts';
import { errorCode, fileProblem, missing } from './file-problem.ts';
import { isPattern, staticBase, isIgnored, isUrl, refuseAddress } from './path-kinds.ts';

export interface DatasetFile {
  /** The path of the file, which starts with the path that the user named. */
  readonly file: string;
  /** Values of folders `name=value` below the path that the user named, as text. */
  readonly partitions: PartitionValues;
}

export interface DatasetFiles {
  readonly files: readonly DatasetFile[];
  /** Constant columns from the names of folders. */
  readonly partitionColumns: readonly PartitionColumn[];
}

export interface DatasetPathOptions {
  /**
   * Extensions of data files inside folders, such as [".parquet"]. Files named part-... without an extension
   * are data too.
   */
  readonly extensions: readonly string[];
  /** Default: 'infer'. */
  readonly partitions?: FolderColumns;
}

/**
 * The files that paths name: a file; a folder of part files, at any depth; a glob; an http(s) URL; several of
 * these. Names that start with "_" or "." are not data (_SUCCESS, .crc). A file that is named twice is read
 * once. Files are sorted by the segments of their paths.
 */
export async function resolveDataset(
  paths: string | readonly string[],
  options: DatasetPathOptions,
): Promise<DatasetFiles> {
  const named = typeof paths === 'string' ? [paths] : paths;
  if (named.length === 0) throw new DataError('no input path is given', { phase: 'read' });
  const found = new Map<string, DatasetFile>();
  for (const path of named) {
    for (const file of await resolveOne(path, options)) {
      const identity = isUrl(file.file) ? file.file : resolve(file.file);
      if (!found.has(identity)) found.set(identity, file);
    }
  }
  const files = [...found.values()].sort((a, b) => comparePaths(a.file, b.file));
  return { files, partitionColumns: partitionColumns(files, options.partitions) };
}

async function resolveOne(path: string, options: DatasetPathOptions): Promise<DatasetFile[]> {
  if (isUrl(path)) return [{ file: path, partitions: {} }];
  refuseAddress(path, 'read');
  const pattern = await isPattern(path);
  await recoverInput(pattern ? await staticBase(path) : path);
  const kind = await kindOf(path);
  if (kind === 'file') return [{ file: path, partitions: {} }];
  if (kind === 'folder') {
    const files = await filesBelow(path, options);
    if (files.length === 0) throw emptyFolder(path, options);
    return files.map((file) => ({ file, partitions: valuesOf(relative(path, file), options) }));
  }
  if (pattern) return resolveGlob(path, options);
  throw missing({ phase: 'read', file: path });
}

async function resolveGlob(pattern: string, options: DatasetPathOptions): Promise<DatasetFile[]> {
  const [base, { glob }] = [await staticBase(pattern), await import('tinyglobby')];
  const matches = await glob(pattern, {
    onlyFiles: false,
    expandDirectories: false,
    absolute: isAbsolute(pattern),
  });
  const files: string[] = [];
  for (const match of matches) {
    await requireNoLoop(match);
    if (isIgnored(basename(match))) continue;
    if (match.endsWith('/')) files.push(...(await filesBelow(match.slice(0, -1), options)));
    else files.push(match);
  }
  if (files.length === 0)
    throw new DataError(`no file matches the pattern "${pattern}"`, {
      phase: 'read',
      advice: 'Check the pattern',
    });
  return files.map((file) => ({ file, partitions: valuesOf(relative(base, file), options) }));
}

function valuesOf(path: string, { partitions }: DatasetPathOptions): PartitionValues {
  return partitions === 'none' ? {} : partitionsOf(path);
}

async function filesBelow(folder: string, options: DatasetPathOptions): Promise<string[]> {
  let entries: Dirent[];
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (error) {
    throw fileProblem(error, 'read', folder);
  }
  const files: string[] = [];
  for (const entry of entries) {
    if (isIgnored(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) await requireNoLoop(path);
    const kind = entry.isSymbolicLink() ? await kindOf(path) : entry.isDirectory() ? 'folder' : 'file';
    if (kind === 'folder') files.push(...(await filesBelow(path, options)));
    else if (kind === 'file' && isData(entry.name, options)) files.push(path);
  }
  return files;
}

/** Throws DataError for a path with a cycle of links. */
async function requireNoLoop(path: string): Promise<void> {
  // Most paths have no links, and then this check is fast.
  if ((await realpath(path).catch(() => undefined)) === resolve(path)) return;
  const parts = resolve(path).split(sep);
  const above: string[] = [];
  for (let depth = 1; depth <= parts.length; depth++) {
    const prefix = parts.slice(0, depth).join(sep) || sep;
    const real = await realpath(prefix).catch((error: unknown) =>
      errorCode(error) === 'ELOOP' ? undefined : prefix,
    );
    if (real === undefined || above.includes(real))
      throw new DataError(`the link ${prefix} leads to itself or to a folder above it`, {
        phase: 'read',
        file: path,
        advice: 'Remove the link, or name the files',
      });
    above.push(real);
  }
}

function isData(name: string, options: DatasetPathOptions): boolean {
  return (
    options.extensions.some((extension) => name.toLowerCase().endsWith(extension)) ||
    /^part-[^.]*$/.test(name)
  );
}

async function kindOf(path: string): Promise<'file' | 'folder' | 'nothing'> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return 'nothing';
    throw fileProblem(error, 'read', path);
  }
}

function emptyFolder(file: string, { extensions }: DatasetPathOptions): DataError {
  const plain = extensions.filter((extension) => compressionOf(extension).compression === 'none');
  const orPacked = plain.length < extensions.length ? '; text also packed, such as *.csv.gz' : '';
  return new DataError(
    `the folder has no data files (${plain.map((extension) => `*${extension}`).join(', ')}${orPacked})`,
    { phase: 'read', file },
  );
}

function comparePaths(a: string, b: string): number {
  const left = isUrl(a) ? a.split('/') : resolve(a).split(sep);
  const right = isUrl(b) ? b.split('/') : resolve(b).split(sep);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return left.length - right.length;
}

/** Throws UsageError for a name that is not UTF-8: the file or folder would be written under another name. */
export function refuseLossyName(target: string, phase: string): void {
  for (let path = resolve(target); isLossy(path) && !existsSync(path); path = dirname(path))
    if (isLossy(basename(path)))
      throw new UsageError('the name is not UTF-8, and would be written as another name', {
        phase,
        file: target,
        advice: 'Choose a name in UTF-8, without U+FFFD',
      });
}
