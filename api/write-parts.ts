import { join } from 'node:path';
import { type FileFormatName, fileFormats } from '../connectors/files/format-names.ts';
import type { OpenSinkOptions } from '../connectors/formats.ts';
import { openSink } from '../connectors/open-sink.ts';
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

/**
 * Throws UsageError for options that the format does not have, and if the folder must not be replaced: see
 * checkOutput.
 */
export async function checkPartsFolder(
  directory: string,
  { overwrite = false, ...options }: WritePartsOptions,
): Promise<void> {
  void (await sinkOf(join(directory, 'part'), options));
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
      const { sink, ending } = await sinkOf(join(output.temporary, name), options);
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
async function sinkOf(
  path: string,
  { format = 'parquet', codec, parquetBackend, escapeFormulas }: WritePartsOptions,
): Promise<{ readonly sink: CheckedSink; readonly ending: string }> {
  // Parquet is a folder.
  const ending = format === 'parquet' ? '' : `.${format === 'text' ? 'csv' : format}`;
  const sink = await openSink(`${path}${ending}`, { format, codec, parquetBackend, escapeFormulas });
  return { sink, ending };
}

function outputOptions(overwrite: boolean): AtomicOutputOptions {
  return { kind: 'folder', overwrite, recognizes: isPart };
}

const endings = fileFormats.filter((format) => format !== 'parquet' && format !== 'text').join('|');
const part = new RegExp(`^(?:fold-\\d+/)?(?:train|validation|test)(/.*|\\.(?:${endings}))$`);

/** True for folders and files with names that an earlier split may have written, in any format. */
function isPart(path: string): boolean {
  const [, below] = part.exec(path) ?? [];
  if (below === undefined) return /^fold-\d+\/$/.test(path);
  return !below.startsWith('/') || below === '/' || isDatasetEntry(below.slice(1));
}
