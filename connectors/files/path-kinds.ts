/** The path that means stdin or stdout. */
export const STANDARD_STREAM = '-';

/** The name of an input in messages. */
export function inputName(path: string): string {
  return path === STANDARD_STREAM ? 'stdin' : path;
}

/** The name of an output in messages. */
export function outputName(path: string): string {
  return path === STANDARD_STREAM ? 'stdout' : path;
}

/** True for a path that names a file on a web server. */
export function isUrl(path: string): boolean {
  return /^https?:\/\//i.test(path);
}
