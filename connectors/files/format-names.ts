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

/** Names and first bytes of the files of a format. */
interface FileKindNames {
  readonly formats: readonly FileFormatName[];
  /** Extensions of data files, also inside folders. */
  readonly extensions: readonly string[];
  /**
   * Further extensions. In folders such files are mostly notes, so they are data only if the user names them.
   */
  readonly otherExtensions?: readonly string[];
  /** Matches the first eight bytes, each as a character. */
  readonly head?: RegExp;
  /** Content types that web servers send. */
  readonly contentTypes: readonly string[];
}

/** Kinds of files, one for each reader. What reads and writes them is in connectors/formats.ts. */
export const fileKinds = {
  parquet: {
    formats: ['parquet'],
    extensions: ['.parquet', '.parq', '.pq'],
    head: /^PAR[1E]/,
    contentTypes: ['application/vnd.apache.parquet'],
  },
  arrow: {
    formats: ['arrow', 'feather'],
    extensions: ['.arrow', '.arrows', '.feather', '.ipc'],
    head: /^(ARROW1|\xff\xff\xff\xff)/,
    contentTypes: ['application/vnd.apache.arrow.file', 'application/vnd.apache.arrow.stream'],
  },
  text: {
    formats: ['csv', 'tsv', 'dat', 'text'],
    extensions: withCompressed(['.csv', '.tsv', '.dat']),
    otherExtensions: ['.txt', '.data', '.psv'],
    contentTypes: ['text/csv', 'text/tab-separated-values'],
  },
  ndjson: {
    formats: ['ndjson', 'jsonl'],
    extensions: withCompressed(['.ndjson', '.jsonl']),
    head: /^[\s\xef\xbb\xbf]*\{\s*["}]/,
    contentTypes: ['application/x-ndjson', 'application/jsonl'],
  },
} satisfies Readonly<Record<string, FileKindNames>>;

export type FileKind = keyof typeof fileKinds;

const kinds = Object.entries(fileKinds) as readonly (readonly [FileKind, FileKindNames])[];

/** Extensions of data files inside folders. */
export const knownExtensions = kinds.flatMap(([, { extensions }]) => extensions);

export function kindOfFormat(format: FileFormatName): FileKind {
  return kinds.find(([, { formats }]) => formats.includes(format))?.[0] ?? 'text';
}

/** The kind of file by a path's extension. */
export function kindOfPath(path: string): FileKind | undefined {
  const name = (isUrl(path) ? urlOf(path).pathname : path).toLowerCase();
  const ending = extname(compressionOf(name).bare);
  return kinds.find(
    ([, { extensions, otherExtensions }]) =>
      hasExtension(name, extensions) || otherExtensions?.includes(ending),
  )?.[0];
}

/** True for a name that ends with one of the extensions, in upper or lower case. */
export function hasExtension(name: string, extensions: readonly string[]): boolean {
  return extensions.some((extension) => name.toLowerCase().endsWith(extension));
}

/** The kind of file by its first eight bytes. */
export function kindOfHead(bytes: Uint8Array): FileKind | undefined {
  const text = Buffer.from(bytes).toString('latin1');
  return kinds.find(([, { head }]) => head?.test(text))?.[0];
}

/** The kind of file by the content type that a web server sends. */
export function kindOfContentType(type: string): FileKind | undefined {
  return kinds.find(([, { contentTypes }]) => contentTypes.includes(type))?.[0];
}

/**
 * Types of text columns; numbers from narrow to wide. Timestamps count microseconds; `timestamp(UTC)` is for
 * texts with an offset or a Z.
 */
export const textTypes = [
  'int32',
  'int64',
  'float32',
  'float64',
  'utf8',
  'bool',
  'date',
  'timestamp',
  'timestamp(UTC)',
] as const;
export type TextType = (typeof textTypes)[number];
