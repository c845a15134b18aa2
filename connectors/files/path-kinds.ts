import { publicPath, UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/shown.ts';

/** The path that means stdin or stdout. */
export const STANDARD_STREAM = '-';

/** Name of an input in messages. */
export function inputName(path: string): string {
  return path === STANDARD_STREAM ? 'stdin' : publicPath(path);
}

/** Name of an output in messages. */
export function outputName(path: string): string {
  return path === STANDARD_STREAM ? 'stdout' : path;
}

/** True for the URL of a file on a web server. */
export function isUrl(path: string): boolean {
  return /^https?:\/\//i.test(path);
}

/** Parses a URL. Throws UsageError if that fails. */
export function urlOf(path: string): URL {
  try {
    return new URL(path);
  } catch (cause) {
    throw new UsageError('this is not a URL', {
      phase: 'read',
      file: path,
      advice: 'Check the address',
      cause,
    });
  }
}

/** True for names in folders that are not data, such as _SUCCESS and .crc; "_a=1" is a partition. */
export function isIgnored(name: string): boolean {
  return name.startsWith('.') || (name.startsWith('_') && !name.includes('='));
}

/** Throws UsageError unless the value is a path. `phase`: read, write, ... */
export function requirePath(path: unknown, phase: string): asserts path is string {
  if (typeof path === 'string' && path !== '') return;
  throw new UsageError(`a path is a text that is not empty, got ${shown(path)}`, {
    phase,
    advice: 'Name a file or a folder',
  });
}

/** One path or several as a list. Throws UsageError for other values and for an empty list. */
export function pathList(paths: string | readonly string[]): readonly string[] {
  const list: unknown = typeof paths === 'string' ? [paths] : paths;
  if (!Array.isArray(list) || list.length === 0)
    throw new UsageError(
      `reading takes a path or a list of paths, got ${Array.isArray(list) ? 'an empty list' : shown(list)}`,
      { phase: 'read', advice: "For example 'ratings.parquet'" },
    );
  for (const path of list) requirePath(path, 'read');
  return list as readonly string[];
}
