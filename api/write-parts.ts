import { join } from 'node:path';
import type { FileFormatName } from '../connectors/files/format-names.ts';
import { openSink, type OpenSinkOptions } from '../connectors/open-sink.ts';
import { atomicOutput, type AtomicOutputOptions, checkOutput } from '../connectors/output/atomic-output.ts';
import type { CheckedSink, WriteSummary } from '../connectors/output/checked-sink.ts';
import { isDatasetEntry } from '../connectors/parquet/part-names.ts';
import type { Dataset } from './dataset.ts';
import type { RunOptions } from './run-session.ts';
import { writeInto } from './writers.ts';

/** A data set and its name inside the folder, such as "train" or "fold-1/test". */
export interface NamedPart {
  readonly name: string;
  readonly rows: Dataset;
}

export interface WritePartsOptions
  extends RunOptions, Pick<OpenSinkOptions, 'codec' | 'parquetBackend' | 'escapeFormulas' | 'overwrite'> {
  /** Default: Parquet, a folder of part files for each data set. */
  readonly format?: FileFormatName | undefined;
}

/** File endings of formats that are not folders. */
const endings: Readonly<Record<FileFormatName, string>> = {
  parquet: '',
  csv: '.csv',
  text: '.csv',
  tsv: '.tsv',
  dat: '.dat',
  ndjson: '.ndjson',
  jsonl: '.jsonl',
  arrow: '.arrow',
  feather: '.feather',
};

/**
 * Throws UsageError for options that the format does not have, and if the folder must not be replaced: see
 * checkOutput.
 */
export async function checkPartsFolder(
  directory: string,
  { overwrite = false, ...options }: WritePartsOptions,
): Promise<void> {
  void sinkOf(join(directory, 'part'), options);
  await checkOutput(directory, outputOptions(overwrite));
}

/**
 * Writes data sets into one folder, which appears when all of them are complete. Returned paths are the final
 * ones.
 */
export async function writeParts(
  parts: readonly NamedPart[],
  directory: string,
  { overwrite = false, ...options }: WritePartsOptions,
): Promise<WriteSummary[]> {
  const output = await atomicOutput(directory, outputOptions(overwrite));
  try {
    const written: WriteSummary[] = [];
    for (const { name, rows } of parts) {
      const { sink, ending } = sinkOf(join(output.temporary, name), options);
      const { signal, onEvent } = options;
      written.push({
        ...(await writeInto(rows, sink, { signal, onEvent })),
        path: join(directory, `${name}${ending}`),
      });
    }
    await output.commit();
    return written;
  } catch (error) {
    throw await output.fail(error);
  }
}

/** The sink for one data set; the format's ending is appended to its path. */
function sinkOf(
  path: string,
  { format = 'parquet', codec, parquetBackend, escapeFormulas }: WritePartsOptions,
): { readonly sink: CheckedSink; readonly ending: string } {
  const ending = endings[format];
  return { sink: openSink(`${path}${ending}`, { format, codec, parquetBackend, escapeFormulas }), ending };
}

function outputOptions(overwrite: boolean): AtomicOutputOptions {
  return { kind: 'folder', overwrite, recognizes: isPart };
}

/** True for folders and files with names that an earlier split may have written, in any format. */
function isPart(path: string): boolean {
  const [, below] =
    /^(?:fold-\d+\/)?(?:train|validation|test)(\/.*|\.(?:csv|tsv|dat|ndjson|jsonl|arrow|feather))$/.exec(
      path,
    ) ?? [];
  if (below === undefined) return /^fold-\d+\/$/.test(path);
  return !below.startsWith('/') || below === '/' || isDatasetEntry(below.slice(1));
}
