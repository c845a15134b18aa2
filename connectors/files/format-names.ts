import { extname } from 'node:path';
import { isUrl } from './path-kinds.ts';

/** Formats of ratings. "text" is separated text of any kind; csv, tsv and dat settle the delimiter too. */
export const fileFormats = ['parquet', 'csv', 'tsv', 'dat', 'text', 'arrow'] as const;
export type FileFormatName = (typeof fileFormats)[number];

/** Endings of data files inside folders. */
export const parquetExtensions = ['.parquet', '.parq', '.pq'];
export const arrowExtensions = ['.arrow', '.arrows', '.feather', '.ipc'];
export const textExtensions = ['.csv', '.tsv', '.dat', '.csv.gz', '.tsv.gz', '.dat.gz'];
export const knownExtensions = [...parquetExtensions, ...arrowExtensions, ...textExtensions];

/** Endings of text files that are data only when they are named themselves: in folders they are more often notes. */
const otherText = ['.txt', '.data', '.psv'];

/** The delimiter that belongs to a format's name; undefined where it is inferred. */
export function delimiterOf(format: FileFormatName | undefined): string | undefined {
  return format === 'csv' ? undefined : format === 'tsv' ? '\t' : format === 'dat' ? '::' : undefined;
}

/** The format that a path's ending names; "text" for text of any kind. */
export function formatOfPath(path: string): 'parquet' | 'text' | 'arrow' | undefined {
  const name = (isUrl(path) ? new URL(path).pathname : path).toLowerCase();
  const has = (extensions: readonly string[]) => extensions.some((extension) => name.endsWith(extension));
  if (has(parquetExtensions)) return 'parquet';
  if (has(arrowExtensions)) return 'arrow';
  return has(textExtensions) || otherText.includes(extname(name.replace(/\.gz$/, ''))) ? 'text' : undefined;
}
