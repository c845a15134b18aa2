import { join } from 'node:path';
import type { RecordBatch, Schema } from 'apache-arrow';
import type { ParquetFileWriter } from '../../connectors/parquet/backend.ts';
import { parquetBackend } from '../../connectors/parquet/backends.ts';
import { partName } from '../../connectors/parquet/part-names.ts';

/** A batch and its folder in the data set: "train", "test", or "" for the data set itself. */
export interface FolderBatch {
  readonly part: string;
  readonly batch: RecordBatch;
}

export interface PartFileOptions {
  /** The folder of the data set, with a folder for each part in it. */
  readonly folder: string;
  readonly parts: readonly string[];
  /** The number of the file that every part gets, with or without rows. */
  readonly number: number;
  readonly schema: Schema;
  /** Called before every batch with the number of rows written since the last call; true stops the work. */
  readonly stop: (rows: number) => boolean;
}

/** Totals of one part of a data set, as plain data. */
export type PartSummary = {
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
};

const writeOptions = { codec: 'zstd', rowGroupSize: 1 << 20 } as const;

/**
 * Writes one part file into each part's folder from one stream of batches. Returns undefined if it was
 * stopped. After a stop or an error the files are incomplete, and the owner of the folder removes them.
 */
export async function writePartFiles(
  batches: AsyncIterable<FolderBatch>,
  options: PartFileOptions,
): Promise<Record<string, PartSummary> | undefined> {
  const { folder, parts, number, schema, stop } = options;
  const backend = await parquetBackend();
  const name = partName(number);
  const open = new Map<string, ParquetFileWriter>();
  const written = new Map<string, PartSummary>();
  let rows = 0;
  try {
    for (const part of parts)
      open.set(part, await backend.create(join(folder, part, name), schema, writeOptions));
    for await (const { part, batch } of batches) {
      if (stop(rows)) return undefined;
      const writer = open.get(part);
      if (writer === undefined) throw new Error(`no part named "${part}"`);
      await writer.write(batch);
      rows = batch.numRows;
    }
    if (stop(rows)) return undefined;
    for (const [part, writer] of open) {
      written.set(part, { ...(await writer.close()), files: 1 });
      open.delete(part);
    }
    return Object.fromEntries(written);
  } finally {
    for (const writer of open.values()) await writer.abort();
  }
}

/** Adds the sums part by part. */
export function addFiles(
  a: Readonly<Record<string, PartSummary>>,
  b: Readonly<Record<string, PartSummary>>,
): Record<string, PartSummary> {
  const sums = { ...a };
  for (const [part, { rows, bytes, files }] of Object.entries(b)) {
    const before = sums[part] ?? { rows: 0, bytes: 0, files: 0 };
    sums[part] = { rows: before.rows + rows, bytes: before.bytes + bytes, files: before.files + files };
  }
  return sums;
}
