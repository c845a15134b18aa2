import { extname } from 'node:path';
import { compressionOf, withCompressed } from '../compression/compressions.ts';
import { isUrl, urlOf } from './path-kinds.ts';

/** Formats of ratings by name. "text" is separated text of any kind; tsv and dat also fix the delimiter. */
export const fileFormats = [
  'parquet',
  'csv',
  'tsv',
  'dat',
  'text',
  'ndjson',
  'jsonl',
  'arrow',
  'feather',
] as const;
export type FileFormatName = (typeof fileFormats)[number];

/** Kinds of files, one for each reader. */
export type FileKind = 'parquet' | 'text' | 'ndjson' | 'arrow';

/** Extensions of data files inside folders. */
export const parquetExtensions = ['.parquet', '.parq', '.pq'];
export const arrowExtensions = ['.arrow', '.arrows', '.feather', '.ipc'];
export const textExtensions = withCompressed(['.csv', '.tsv', '.dat']);
export const ndjsonExtensions = withCompressed(['.ndjson', '.jsonl']);
export const knownExtensions = [
  ...parquetExtensions,
  ...arrowExtensions,
  ...textExtensions,
  ...ndjsonExtensions,
];

/**
 * Further extensions of text. In folders such files are mostly notes, so they are data only if the user names
 * them.
 */
const otherText = ['.txt', '.data', '.psv'];

/** The delimiter of a format; undefined where it is inferred. */
export function delimiterOf(format: FileFormatName | undefined): string | undefined {
  return format === 'csv' ? undefined : format === 'tsv' ? '\t' : format === 'dat' ? '::' : undefined;
}

export function kindOfFormat(format: FileFormatName): FileKind {
  if (format === 'ndjson' || format === 'jsonl') return 'ndjson';
  if (format === 'arrow' || format === 'feather') return 'arrow';
  return format === 'parquet' ? 'parquet' : 'text';
}

/** The kind of file by a path's extension. */
export function kindOfPath(path: string): FileKind | undefined {
  const name = (isUrl(path) ? urlOf(path).pathname : path).toLowerCase();
  const has = (extensions: readonly string[]) => extensions.some((extension) => name.endsWith(extension));
  if (has(parquetExtensions)) return 'parquet';
  if (has(arrowExtensions)) return 'arrow';
  if (has(ndjsonExtensions)) return 'ndjson';
  return has(textExtensions) || otherText.includes(extname(compressionOf(name).bare)) ? 'text' : undefined;
}

/** Types of text columns; numbers from narrow to wide. */
export const textTypes = ['int32', 'int64', 'float32', 'float64', 'utf8', 'bool'] as const;
export type TextType = (typeof textTypes)[number];
