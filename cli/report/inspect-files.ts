import { stat } from 'node:fs/promises';
import { UsageError } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import type { Source } from '../../engine/operator.ts';
import { knownExtensions } from '../../connectors/format-names.ts';
import { resolveDataset } from '../../connectors/dataset-path.ts';
import { ParquetSource } from '../../connectors/parquet-source.ts';
import { type ColumnDescription, type DatasetLayout, describeColumns, layoutOf } from './dataset-layout.ts';

const idle = { events: noEvents, executor: { devices: [], close: async () => {} }, metrics: new RunMetrics() };

/** Files, rows and columns: by the footers of Parquet files; other formats are read once to count their rows. */
export async function inspectFiles(paths: readonly string[], source: Source, signal: AbortSignal): Promise<{ layout: DatasetLayout; columns: ColumnDescription[] }> {
  if (source instanceof ParquetSource) {
    const files = await source.files();
    return { layout: layoutOf(paths, files), columns: describeColumns(await source.schema(), files) };
  }
  if (!source.replayable) throw new UsageError('inspect reads its input twice, and stdin can be read only once', { advice: 'Write it to a file first' });
  const schema = await source.schema();
  const { files } = await resolveDataset(paths, { extensions: knownExtensions });
  let bytes = 0;
  for (const { file } of files) bytes += (await stat(file)).size;
  let rows = 0;
  for await (const batch of await source.execute({ ...idle, signal }, [schema.fields[0].name])) rows += batch.numRows;
  const kind = source.name.replace('-source', '');
  const columns = schema.fields.map(({ name, type, nullable }) => ({ name, type: String(type), nullable, codecs: [kind], bytes: 0 }));
  return { layout: { paths, files: files.length, bytes, rows, rowGroups: 0 }, columns };
}
