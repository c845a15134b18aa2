import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/shown.ts';

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
