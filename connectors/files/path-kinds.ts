import { publicPath, UsageError } from '../../engine/errors.ts';

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
