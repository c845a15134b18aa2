import { UsageError, DataError } from '../engine/errors.ts';
import type { Source } from '../engine/stream/operator.ts';
import { ArrowSource } from './arrow/arrow-source.ts';
import { resolveDataset } from './files/dataset-path.ts';
import {
  delimiterOf,
  type FileFormatName,
  kindOfFormat,
  fileFormats,
  type FileKind,
  kindOfPath,
  knownExtensions,
} from './files/format-names.ts';
import { STANDARD_STREAM, inputName, isUrl, pathList } from './files/path-kinds.ts';
import { firstBytes } from './files/stored-bytes.ts';
import { headOfUrl } from './http/stream-url.ts';
import { NdjsonSource } from './ndjson/ndjson-source.ts';
import type { ParquetBackendName } from './parquet/backend.ts';
import { ParquetSource } from './parquet/parquet-source.ts';
import { TextSource, type TextSourceOptions } from './text/text-source.ts';

export interface OpenSourceOptions extends TextSourceOptions {
  /** Default: detected from the files' extensions and first bytes. */
  readonly format?: FileFormatName;
  readonly parquetBackend?: ParquetBackendName;
}

/** A source for files, folders, globs, URLs, or "-" for stdin (with a format). */
export async function openSource(
  paths: string | readonly string[],
  options: OpenSourceOptions = {},
): Promise<Source> {
  const { format, parquetBackend, partitions, ...text } = options;
  const named = typeof paths === 'string' ? [paths] : paths;
  const kind = format === undefined ? await detectFormat(named) : kindOfFormat(format);
  if (kind === 'parquet') {
    if (named.includes(STANDARD_STREAM))
      throw new UsageError('Parquet cannot be read from stdin: reading begins with the footer at the end', {
        phase: 'read',
        advice: 'Name a file',
      });
    rejectOptions(text, kind);
    return new ParquetSource(named, { backend: parquetBackend, partitions });
  }
  if (kind === 'arrow') {
    rejectOptions(text, kind);
    return new ArrowSource(named, { partitions });
  }
  if (kind === 'ndjson') {
    const { delimiter, header, quotes, comment, decimalComma, ...ndjson } = text;
    rejectOptions({ delimiter, header, quotes, comment, decimalComma }, kind);
    return new NdjsonSource(named, { ...ndjson, partitions });
  }
  return new TextSource(named, { ...text, partitions, delimiter: text.delimiter ?? delimiterOf(format) });
}

function rejectOptions(options: object, kind: string): void {
  const idle = Object.entries(options).find(([, value]) => value !== undefined)?.[0];
  if (idle !== undefined)
    throw new UsageError(`${idle} acts only on text, and the input is ${kind}`, {
      phase: 'read',
      advice: 'Leave it out',
    });
}

/**
 * The common format of all files that the paths name, by their extensions, else by their first bytes. Throws
 * DataError that names two files of different formats, or a file of unknown format unless `otherwise` gives
 * the format to assume; UsageError for stdin.
 */
export async function detectFormat(paths: readonly string[], otherwise?: FileKind): Promise<FileKind> {
  paths = pathList(paths);
  if (paths.includes(STANDARD_STREAM))
    throw new UsageError('the format of stdin is not known', {
      phase: 'read',
      advice: 'Set the option format: csv, tsv, text, ndjson or arrow',
    });
  const { files } = await resolveDataset(paths, { extensions: knownExtensions, partitions: 'none' });
  const [first, ...others] = files.map(({ file }) => file);
  const format = await formatOfFile(first, otherwise);
  for (const file of others) {
    const other = await formatOfFile(file, otherwise);
    if (other === format) continue;
    await refuseModels(paths);
    throw new DataError(`this is ${other}, and ${inputName(first)} is ${format}`, {
      phase: 'read',
      file,
      advice: 'Name files of one format, or a pattern such as "folder/*.csv"',
    });
  }
  return format;
}

/** Throws DataError if a path is a model's folder, whose files have several formats. */
async function refuseModels(paths: readonly string[]): Promise<void> {
  const { isModelFolder } = await import('./model/model-store.ts');
  for (const path of paths) {
    if (await isModelFolder(path))
      throw new DataError('this is the folder of a model, and ratings are needed', {
        phase: 'read',
        file: path,
        advice: 'Give files of ratings, such as those it was trained on',
      });
  }
}

const HEAD_BYTES = 8;

/** Formats by the content types that web servers send. */
const serverTypes: Readonly<Record<string, FileKind>> = {
  'text/csv': 'text',
  'text/tab-separated-values': 'text',
  'application/x-ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  'application/vnd.apache.parquet': 'parquet',
  'application/vnd.apache.arrow.file': 'arrow',
  'application/vnd.apache.arrow.stream': 'arrow',
};

async function formatOfFile(file: string, otherwise: FileKind | undefined): Promise<FileKind> {
  const byName = kindOfPath(file);
  if (byName !== undefined) return byName;
  const { bytes, type } = isUrl(file)
    ? await headOfUrl(file, HEAD_BYTES)
    : { bytes: firstBytes(file, HEAD_BYTES), type: '' };
  const head = Buffer.from(bytes).toString('latin1');
  if (head.startsWith('PAR1') || head.startsWith('PARE')) return 'parquet';
  if (head.startsWith('ARROW1') || head.startsWith('\xff\xff\xff\xff')) return 'arrow';
  if (/^[\s\xef\xbb\xbf]*\{\s*["}]/.test(head)) return 'ndjson';
  const byType = Object.hasOwn(serverTypes, type) ? serverTypes[type] : undefined;
  if (byType !== undefined) return byType;
  if (/^[\s\xef\xbb\xbf]*\[\s*([{\]]|$)/.test(head))
    throw new DataError('a JSON array is not read', {
      phase: 'read',
      file,
      advice: "Write an object on each line (NDJSON), for example with jq -c '.[]'",
    });
  if (otherwise !== undefined) return otherwise;
  throw new DataError(
    'the format is not known: neither the extension nor the first bytes of the file show it',
    {
      phase: 'read',
      file,
      advice: `Set the option format: ${fileFormats.join(', ')}`,
    },
  );
}
