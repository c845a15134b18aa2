import { DataType } from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { readdir } from 'node:fs/promises';
import { counted } from '../../engine/format.ts';
import { DataError } from '../../engine/errors.ts';
import { originOf } from '../../engine/stream/stream.ts';
import { fileProblem } from '../files/file-problem.ts';
import { ParquetSource } from '../parquet/parquet-source.ts';
import { isDatasetEntry } from '../parquet/part-names.ts';
import {
  type IdColumn,
  ascendingRows,
  compareIds,
  firstDescent,
  idText,
  idTypeOf,
  joinIds,
  takeIds,
} from './id-column.ts';
import type { FactorTable } from './write-factors.ts';

const BATCH_FLOATS = 1 << 20;

/** Rows and type of the ids of one side, as the metadata or another side say. */
export interface ExpectedIds {
  readonly rows: number;
  readonly type: IdColumn['type'];
}

/**
 * Reads the part files of one side, written by `saveModel` or by Spark, into one matrix in shared memory.
 * Spark's parts may have ids in any order. Throws DataError that names the file for files of other formats,
 * other columns, other rows than expected, nulls, vectors of another length, values that are not finite, and
 * duplicate ids.
 */
export async function readFactors(
  folder: string,
  rank: number,
  expected?: ExpectedIds,
): Promise<FactorTable> {
  await refuseForeignFiles(folder);
  const source = new ParquetSource(folder, { batchSize: Math.max(1, Math.floor(BATCH_FLOATS / rank)) });
  const schema = await source.schema();
  const idField = schema.fields.find((field) => field.name === 'id');
  const type = idField && idTypeOf(idField.type);
  if (type === undefined || !schema.fields.some((field) => field.name === 'features')) {
    throw new DataError(
      `these are not columns of factors: need id (int32, int64 or utf8) and features (list of float), ` +
        `have ${schema.fields.map((field) => `${field.name}: ${String(field.type)}`).join(', ')}`,
      { phase: 'load', file: folder },
    );
  }
  const { rows } = await source.statistics({ signal: new AbortController().signal });
  if (expected !== undefined) requireExpected(folder, { rows, type }, expected);
  const idChunks: Data[] = [];
  // The ids are read first: the memory for the factors is then allocated for rows that are in the files, not
  // only in their footers.
  for await (const { column, problem } of columnBatches(source, 'id')) {
    if (column.nullCount > 0) throw problem('an id is null', firstNull(column));
    idChunks.push(column);
  }
  const factors = new Float32Array(new SharedArrayBuffer(rows * rank * Float32Array.BYTES_PER_ELEMENT));
  let done = 0;
  for await (const { column, problem } of columnBatches(source, 'features')) {
    copyFeatures(column, rank, factors, done * rank, problem);
    done += column.length;
  }
  return sortedById({ ids: joinIds(type, idChunks), factors }, rank, folder);
}

type Problem = (summary: string, row?: number) => DataError;

/** The batches of one column, and errors that name the file and row of a batch. */
export async function* columnBatches(
  source: ParquetSource,
  name: string,
): AsyncGenerator<{ readonly column: Data; readonly problem: Problem }> {
  const { signal } = new AbortController();
  for await (const batch of await source.execute({ signal }, [name])) {
    const problem: Problem = (summary, row = 0) => {
      const origin = originOf(batch);
      return new DataError(summary, {
        phase: 'load',
        file: origin?.file,
        rowGroup: origin?.rowGroup,
        row: (origin?.firstRow ?? 0) + row,
      });
    };
    yield { column: batch.data.children[0], problem };
  }
}

function requireExpected(folder: string, found: ExpectedIds, expected: ExpectedIds): void {
  if (found.rows !== expected.rows)
    throw new DataError(
      `part files are missing or foreign: ${counted(found.rows, 'row')}, and the metadata say ${expected.rows}`,
      { phase: 'load', file: folder },
    );
  if (found.type !== expected.type)
    throw new DataError(`the ids are ${found.type}, and the metadata say ${expected.type}`, {
      phase: 'load',
      file: folder,
    });
}

/** Copies vectors of `rank` finite numbers to a place of a matrix; `problem` makes its errors. */
export function copyFeatures(
  features: Data,
  rank: number,
  target: Float32Array,
  at: number,
  problem: Problem,
): void {
  const child = features.children[0];
  if (
    !(
      DataType.isList(features.type) ||
      DataType.isLargeList(features.type) ||
      DataType.isFixedSizeList(features.type)
    ) ||
    !DataType.isFloat(child.type) ||
    child.type.precision !== 1
  ) {
    throw problem(`features are ${String(features.type)}, need a list of float`);
  }
  if (features.nullCount > 0) throw problem('a feature vector is null', firstNull(features));
  const offsetOf = (row: number) =>
    DataType.isFixedSizeList(features.type)
      ? row * features.type.listSize
      : Number(features.valueOffsets[row]);
  for (let row = 0; row < features.length; row++) {
    const length = offsetOf(row + 1) - offsetOf(row);
    if (length !== rank)
      throw problem(`a feature vector has ${length} values, and the model's rank is ${rank}`, row);
  }
  const values: Float32Array = child.values.subarray(offsetOf(0), offsetOf(features.length));
  if (child.nullCount > 0) throw problem('a feature is null');
  let bad = 0;
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) bad++;
  if (bad > 0)
    throw problem(
      `${bad} of ${values.length} features are NaN or infinite`,
      Math.floor(values.findIndex((value) => !Number.isFinite(value)) / rank),
    );
  target.set(values, at);
}

function firstNull(data: Data): number {
  let row = 0;
  while (row < data.length && data.getValid(row)) row++;
  return row;
}

/**
 * The table sorted by id; the same table if it is sorted already. Throws DataError that names the `file` for
 * repeated ids.
 */
export function sortedById(table: FactorTable, rank: number, file: string): FactorTable {
  if (firstDescent(table.ids) === undefined) return table;
  const rows = ascendingRows(table.ids);
  for (let i = 1; i < rows.length; i++) {
    if (compareIds(table.ids, rows[i - 1], rows[i]) === 0)
      throw new DataError(`the id ${idText(table.ids, rows[i])} occurs twice`, {
        phase: 'load',
        file,
      });
  }
  const factors = new Float32Array(new SharedArrayBuffer(table.factors.byteLength));
  for (const [at, row] of rows.entries())
    factors.set(table.factors.subarray(row * rank, (row + 1) * rank), at * rank);
  return { ids: takeIds(table.ids, rows), factors };
}

async function refuseForeignFiles(folder: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    throw fileProblem(error, 'load', folder);
  }
  const foreign = names.find((name) => !isDatasetEntry(name));
  if (foreign !== undefined)
    throw new DataError(`"${foreign}" does not belong to a model`, { phase: 'load', file: folder });
  if (!names.some((name) => name.endsWith('.parquet')))
    throw new DataError('the model has no part files here', { phase: 'load', file: folder });
}
