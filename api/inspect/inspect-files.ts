import type { Schema } from 'apache-arrow';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { resolveDataset } from '../../connectors/files/dataset-path.ts';
import { knownExtensions } from '../../connectors/files/format-names.ts';
import { isUrl, STANDARD_STREAM } from '../../connectors/files/path-kinds.ts';
import { headOfUrl } from '../../connectors/http/stream-url.ts';
import type { ParquetFileInfo } from '../../connectors/parquet/backend.ts';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import { publicPath, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import { ratingWarnings, type TrainingWarning } from '../../operators/evaluation/model-warnings.ts';
import { profileRatings, type RatingsSummary } from '../../operators/ratings/profile-ratings.ts';
import { BAD_ROWS, type RatingColumns, SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import type { Dataset } from '../dataset.ts';
import type { RunOptions } from '../run-session.ts';

/**
 * Files, rows and columns. Parquet files are described from their footers; other formats are read once to
 * count rows.
 */
export async function inspectFiles(
  paths: readonly string[],
  dataset: Dataset,
  options: RunOptions,
): Promise<{ layout: DatasetLayout; columns: ColumnDescription[] }> {
  if (dataset.plan.kind !== 'source') throw new Error('inspect takes the files as they are');
  const { source } = dataset.plan;
  if (source instanceof ParquetSource) {
    const files = await source.files();
    return { layout: layoutOf(paths, files), columns: describeColumns(await source.schema(), files) };
  }
  if (!source.replayable)
    throw new UsageError('inspect reads its input twice, and stdin can be read only once', {
      advice: 'Write it to a file first',
    });
  const schema = await source.schema();
  const { files } = await resolveDataset(paths, { extensions: knownExtensions, partitions: 'none' });
  let bytes = 0;
  for (const { file } of files)
    bytes += isUrl(file) ? ((await headOfUrl(file, 1)).size ?? 0) : (await stat(file)).size;
  let rows = 0;
  for await (const batch of await dataset.stream({ ...options, columns: [schema.fields[0].name] }))
    rows += batch.numRows;
  const kind = source.name.replace('-source', '');
  const columns = schema.fields.map(({ name, type, nullable }) => ({
    name,
    type: String(type),
    nullable,
    codecs: [kind],
    bytes: 0,
  }));
  return { layout: { paths, files: files.length, bytes, rows, rowGroups: 0 }, columns };
}

/** Counts users, items and ratings, and checks them as `train` does. Leaves out bad rows, with a warning. */
export async function profileDataset(
  dataset: Dataset,
  columns: RatingColumns,
  options: RunOptions,
): Promise<DatasetProfile> {
  const ratings = dataset.pipe(new SelectRatings(columns, 'skip'));
  // A missing column throws an error that lists the existing columns.
  await ratings.schema();
  const ctx = dataset.session.context(options);
  const summary = await runInto(ratings.plan, profileRatings(), ctx);
  const { users, items, userDegrees, itemDegrees, rating } = summary;
  const shape = rating && {
    ...rating,
    ratings: summary.ratings,
    users: { rated: users, single: userDegrees.single },
    items: { rated: items, single: itemDegrees.single },
  };
  return {
    summary,
    badRows: ctx.metrics.get(BAD_ROWS)?.rows ?? 0,
    warnings: shape ? ratingWarnings(shape) : [],
  };
}

export interface DatasetProfile {
  readonly summary: RatingsSummary;
  readonly badRows: number;
  readonly warnings: readonly TrainingWarning[];
}

/** The files at the paths with their sizes and times, by which a search recognizes its ratings. */
export async function identityOf(paths: readonly string[]): Promise<JsonObject[]> {
  const onDisk = paths.filter((path) => path !== STANDARD_STREAM);
  const { files } =
    onDisk.length === 0
      ? { files: [] }
      : await resolveDataset(onDisk, { extensions: knownExtensions, partitions: 'none' });
  return Promise.all(
    files.map(async ({ file }): Promise<JsonObject> => {
      if (isUrl(file)) return { file: publicPath(file) };
      const { size, mtimeMs } = await stat(file);
      return { file: resolve(file), size, changed: mtimeMs };
    }),
  );
}

export interface DatasetLayout {
  readonly paths: readonly string[];
  readonly files: number;
  readonly bytes: number;
  readonly rows: number;
  readonly rowGroups: number;
}

export interface ColumnDescription {
  readonly name: string;
  /** Arrow's name for the type. */
  readonly type: string;
  readonly nullable: boolean;
  /** Codecs of the row groups; empty for a column from folder names. */
  readonly codecs: readonly string[];
  /** Stored bytes. */
  readonly bytes: number;
}

function layoutOf(paths: readonly string[], files: readonly ParquetFileInfo[]): DatasetLayout {
  const sum = (of: (file: ParquetFileInfo) => number) => files.reduce((total, file) => total + of(file), 0);
  return {
    paths,
    files: files.length,
    bytes: sum(({ bytes }) => bytes),
    rows: sum(({ rows }) => rows),
    rowGroups: sum(({ rowGroups }) => rowGroups.length),
  };
}

/**
 * Columns with their stored bytes. The chunks of a nested column ("features.list.element") count for its root
 * column.
 */
function describeColumns(schema: Schema, files: readonly ParquetFileInfo[]): ColumnDescription[] {
  return schema.fields.map(({ name, type, nullable }) => {
    const codecs = new Set<string>();
    let bytes = 0;
    for (const { rowGroups } of files) {
      for (const { columns } of rowGroups) {
        for (const chunk of columns) {
          if (chunk.column !== name && !chunk.column.startsWith(`${name}.`)) continue;
          codecs.add(chunk.codec);
          bytes += chunk.bytes;
        }
      }
    }
    return { name, type: String(type), nullable, codecs: [...codecs].sort(), bytes };
  });
}
