import type { ReadSplit } from '../engine/stream/split.ts';
import { requireStamp } from './files/file-stamp.ts';

/** Readers of splits by format, each loaded at its first split. */
const readers: Readonly<Record<string, () => Promise<ReadSplit>>> = {
  arrow: async () => (await import('./arrow/arrow-source.ts')).readArrowSplit,
  ndjson: async () => (await import('./ndjson/ndjson-source.ts')).readNdjsonSplit,
  parquet: async () => (await import('./parquet/parquet-source.ts')).readParquetSplit,
  text: async () => (await import('./text/text-source.ts')).readTextSplit,
};

/** Reads a split of any format (see ReadSplit). */
export const readSplit: ReadSplit = async function* (split, schema, options) {
  const reader = readers[split.format];
  if (reader === undefined) throw new Error(`no reader of splits of the format ${split.format}`);
  requireStamp(split.file, split.stamp);
  return yield* (await reader())(split, schema, options);
};
