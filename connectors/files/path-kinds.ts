import { isAbsolute } from 'node:path';
import { publicPath, UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';

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

/** Text with %-escapes decoded; unchanged where they are not UTF-8. */
export function decodedText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
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

/** Parts of an address after its scheme: "bucket/folder/file.csv". */
interface Address {
  readonly bucket: string;
  readonly key: string;
}

/** Stores by the schemes of their addresses, with other ways to read a file. */
const stores: readonly {
  readonly schemes: readonly string[];
  readonly name: string;
  readonly advice: (address: Address) => string;
  /** The command that downloads a file. */
  readonly command: (address: Address) => string;
}[] = [
  {
    schemes: ['s3', 's3a', 's3n'],
    name: 'Amazon S3',
    advice: ({ bucket, key }) => `Give an https:// address, which aws s3 presign s3://${bucket}/${key} makes`,
    command: ({ bucket, key }) => `aws s3 cp s3://${bucket}/${key} .`,
  },
  {
    schemes: ['gs', 'gcs'],
    name: 'Google Cloud Storage',
    advice: ({ bucket, key }) =>
      `Give an https:// address: https://storage.googleapis.com/${bucket}/${key} where it is public, else a signed one`,
    command: ({ bucket, key }) => `gcloud storage cp gs://${bucket}/${key} .`,
  },
  {
    schemes: ['az', 'azure', 'abfs', 'abfss', 'wasb', 'wasbs'],
    name: 'Azure Blob Storage',
    advice: () => 'Give the https:// address of the blob, with a SAS token where it is not public',
    command: () => 'azcopy copy ADDRESS .',
  },
  {
    schemes: ['hf'],
    name: 'the Hugging Face Hub',
    advice: (address) => `Give its https:// address, ${hubAddress(address)}`,
    command: () => 'hf download',
  },
];

/**
 * The https address of a file for "hf://datasets/user/name@revision/path". Addresses of models have no first
 * word like `datasets`.
 */
function hubAddress({ bucket, key }: Address): string {
  const [kind, rest] = ['datasets', 'spaces'].includes(bucket)
    ? [`${bucket}/`, key]
    : ['', `${bucket}/${key}`];
  const [user = 'USER', named = 'NAME', ...path] = rest.split('/').filter((part) => part !== '');
  const [name, revision = 'main'] = named.split('@');
  return `https://huggingface.co/${kind}${user}/${name}/resolve/${revision}/${path.length === 0 ? 'FILE' : path.join('/')}`;
}

/**
 * Throws UsageError for an address such as s3:// or hf://, which is neither a path nor http(s). The error
 * recommends other ways to read the file. `phase`: see ErrorDetails.
 */
export function refuseAddress(path: string, phase: string): void {
  // Removes possible secrets: the query, and user and password.
  const file = path.replace(/[?#].*$/s, '').replace(/^([^/]*\/\/)[^/@]*:[^/@]*@/, '$1');
  const [, scheme = '', bucket = '', key = ''] =
    /^([a-z][a-z0-9+.-]+):\/\/([^/]*)\/?(.*)$/is.exec(file) ?? [];
  const lower = scheme.toLowerCase();
  if (lower === '' || lower === 'http' || lower === 'https') return;
  if (lower === 'file')
    throw new UsageError('paths are given without file://', {
      phase,
      file,
      advice: `Write ${bucket === '' ? `/${key}` : `/${bucket}/${key}`}`,
    });
  const store = stores.find(({ schemes }) => schemes.includes(lower));
  const name = store?.name ?? `${lower}://`;
  if (phase === 'write')
    throw new UsageError(`FactorFlow has no client that writes to ${name}`, {
      phase,
      file,
      advice: 'Name a file or folder, and copy it there afterwards',
    });
  const address = { bucket, key };
  throw new UsageError(`FactorFlow has no client that reads from ${name}`, {
    phase,
    file,
    advice: store
      ? `${store.advice(address)}, or download the file first: ${store.command(address)}`
      : 'Give an http:// or https:// address, or download the file first',
  });
}
