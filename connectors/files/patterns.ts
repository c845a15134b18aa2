import { isAbsolute } from 'node:path';

/** True for a path with wildcards, as tinyglobby reads it. */
export async function isPattern(path: string): Promise<boolean> {
  // All wildcards contain one of these characters, so for other paths the library need not be loaded.
  return /[*?[{(!]/.test(path) && (await import('tinyglobby')).isDynamicPattern(path);
}

/** The folders of a pattern before its first wildcard. */
export async function staticBase(pattern: string): Promise<string> {
  const segments = pattern.split('/');
  const dynamic = await Promise.all(segments.map(isPattern));
  return segments.slice(0, Math.max(dynamic.indexOf(true), 0)).join('/') || (isAbsolute(pattern) ? '/' : '.');
}
