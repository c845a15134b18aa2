import { UsageError, DataError } from '../engine/errors.ts';
import type { Source } from '../engine/stream/operator.ts';
import { resolveDataset } from './files/dataset-path.ts';
import {
  fileFormats,
  type FileKind,
  kindOfContentType,
  kindOfFormat,
  kindOfHead,
  kindOfPath,
  knownExtensions,
} from './files/format-names.ts';
import { STANDARD_STREAM, inputName, isUrl, pathList } from './files/path-kinds.ts';
import { firstBytes } from './files/stored-bytes.ts';
import { formats, type OpenSourceOptions } from './formats.ts';
import { headOfUrl } from './http/stream-url.ts';

/** Options that every format takes, or that act only on the files of one. */
const common: readonly string[] = ['format', 'parquetBackend', 'partitions'];

/** A source for files, folders, globs, URLs, or "-" for stdin (with a format). */
export async function openSource(
  paths: string | readonly string[],
  options: OpenSourceOptions = {},
): Promise<Source> {
  const named = typeof paths === 'string' ? [paths] : paths;
  const kind = options.format === undefined ? await detectFormat(named) : kindOfFormat(options.format);
  const taken: readonly string[] = [...common, ...formats[kind].sourceOptions];
  const idle = Object.entries(options).find(([name, value]) => value !== undefined && !taken.includes(name));
  if (idle !== undefined)
    throw new UsageError(`${idle[0]} acts only on text, and the input is ${kind}`, {
      phase: 'read',
      advice: 'Leave it out',
    });
  return formats[kind].source(named, options);
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

async function formatOfFile(file: string, otherwise: FileKind | undefined): Promise<FileKind> {
  const byName = kindOfPath(file);
  if (byName !== undefined) return byName;
  const { bytes, type } = isUrl(file)
    ? await headOfUrl(file, HEAD_BYTES)
    : { bytes: firstBytes(file, HEAD_BYTES), type: '' };
  const found = kindOfHead(bytes) ?? kindOfContentType(type);
  if (found !== undefined) return found;
  if (/^[\s\xef\xbb\xbf]*\[\s*([{\]]|$)/.test(Buffer.from(bytes).toString('latin1')))
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
