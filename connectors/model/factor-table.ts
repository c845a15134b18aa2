import { DataType, Field, Float32, Int32, Int64, List, makeData, RecordBatch, Schema, Struct, Utf8 } from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError } from '../../engine/errors.ts';
import { originOf } from '../../engine/stream/stream.ts';
import { fileProblem } from '../files/file-problem.ts';
import type { Codec } from '../parquet/backend.ts';
import { parquetBackend } from '../parquet/backends.ts';
import { ParquetSource } from '../parquet/parquet-source.ts';
import { isDatasetEntry, partName } from '../parquet/part-names.ts';
import { ascendingRows, compareIds, firstDescent, idCount, idData, idText, idTypeOf, joinIds, takeIds } from './id-column.ts';
import type { IdColumn } from './id-column.ts';

/** One side of a model: row r of the row-major matrix `factors` belongs to id r; ids ascend. */
export interface FactorTable {
  readonly ids: IdColumn;
  readonly factors: Float32Array;
}

/** Floats of a batch, a row group and a part: the sizes depend on the number of rows and the rank alone. */
const BATCH_FLOATS = 1 << 20;
const ROW_GROUP_FLOATS = 1 << 23;
const PART_FLOATS = 1 << 27;

const rowsFor = (floats: number, rank: number) => Math.max(1, Math.floor(floats / rank));

/** Writes the table as <folder>/part-00000.parquet, …: id, features: list<float>. The same table gives the same bytes. */
export async function writeFactors(folder: string, { ids, factors }: FactorTable, rank: number, codec: Codec): Promise<void> {
  const idType = { int32: new Int32(), int64: new Int64(), utf8: new Utf8() }[ids.type];
  const element = new Field('element', new Float32(), false);
  const schema = new Schema([new Field('id', idType, false), new Field('features', new List(element), false)]);
  const backend = await parquetBackend();
  const rows = idCount(ids);
  const options = { codec, rowGroupSize: rowsFor(ROW_GROUP_FLOATS, rank), dictionary: false };
  await mkdir(folder);
  for (let part = 0, start = 0; part === 0 || start < rows; part++) {
    const end = Math.min(rows, start + rowsFor(PART_FLOATS, rank));
    const writer = await backend.create(join(folder, partName(part)), schema, options);
    try {
      for (; start < end; start += rowsFor(BATCH_FLOATS, rank)) {
        const to = Math.min(end, start + rowsFor(BATCH_FLOATS, rank));
        await writer.write(factorBatch(schema, idData(ids, start, to), factors.subarray(start * rank, to * rank), rank));
      }
      await writer.close();
    } catch (error) {
      await writer.abort();
      throw error;
    }
    start = end;
  }
}

export function factorBatch(schema: Schema, id: Data, values: Float32Array, rank: number): RecordBatch {
  const length = id.length;
  const child = makeData({ type: new Float32(), length: values.length, nullCount: 0, data: values });
  const valueOffsets = Int32Array.from({ length: length + 1 }, (_, row) => row * rank);
  const features = makeData({ type: schema.fields[1].type as List<Float32>, length, nullCount: 0, valueOffsets, child });
  return new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length, nullCount: 0, children: [id, features] }));
}

/**
 * Reads the files of `writeFactors` or of Spark (whose parts come in any order of ids) into one matrix over shared memory.
 * Throws DataError that names the file for foreign files, other columns, nulls, vectors of another length, values that
 * are not finite, and ids that occur twice.
 */
export async function readFactors(folder: string, rank: number): Promise<FactorTable> {
  await refuseForeignFiles(folder);
  const source = new ParquetSource(folder, { batchSize: rowsFor(BATCH_FLOATS, rank) });
  const schema = await source.schema();
  const idField = schema.fields.find((field) => field.name === 'id');
  const type = idField && idTypeOf(idField.type);
  if (type === undefined || !schema.fields.some((field) => field.name === 'features')) {
    throw new DataError(`the columns are not those of factors: need id (int32, int64 or utf8) and features (list of float), have ${schema.fields.map((field) => `${field.name}: ${String(field.type)}`).join(', ')}`, { phase: 'load', file: folder });
  }
  const { rows } = await source.statistics();
  const factors = new Float32Array(new SharedArrayBuffer(rows * rank * Float32Array.BYTES_PER_ELEMENT));
  const idChunks: Data[] = [];
  let done = 0;
  const signal = new AbortController().signal;
  for await (const batch of await source.execute({ signal }, ['id', 'features'])) {
    const at = (name: string) => batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)];
    const problem = (summary: string, row = 0) => {
      const origin = originOf(batch);
      return new DataError(summary, { phase: 'load', file: origin?.file, rowGroup: origin?.rowGroup, row: (origin?.firstRow ?? 0) + row });
    };
    if (at('id').nullCount > 0) throw problem('an id is null', firstNull(at('id')));
    copyFeatures(at('features'), rank, factors, done * rank, problem);
    idChunks.push(at('id'));
    done += batch.numRows;
  }
  return inOrder({ ids: joinIds(type, idChunks), factors }, rank, folder);
}

function copyFeatures(features: Data, rank: number, target: Float32Array, at: number, problem: (summary: string, row?: number) => DataError): void {
  const child = features.children[0];
  if (!(DataType.isList(features.type) || DataType.isLargeList(features.type) || DataType.isFixedSizeList(features.type)) || !DataType.isFloat(child.type) || child.type.precision !== 1) {
    throw problem(`features are ${String(features.type)}, need a list of float`);
  }
  if (features.nullCount > 0) throw problem('a feature vector is null', firstNull(features));
  const offsetOf = (row: number) => (DataType.isFixedSizeList(features.type) ? row * features.type.listSize : Number(features.valueOffsets[row]));
  for (let row = 0; row < features.length; row++) {
    const length = offsetOf(row + 1) - offsetOf(row);
    if (length !== rank) throw problem(`a feature vector has ${length} values, and the model's rank is ${rank}`, row);
  }
  const values: Float32Array = child.values.subarray(offsetOf(0), offsetOf(features.length));
  if (child.nullCount > 0) throw problem('a feature is null');
  let bad = 0;
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) bad++;
  if (bad > 0) throw problem(`${bad} of ${values.length} features are NaN or infinite`, Math.floor(values.findIndex((value) => !Number.isFinite(value)) / rank));
  target.set(values, at);
}

function firstNull(data: Data): number {
  let row = 0;
  while (row < data.length && data.getValid(row)) row++;
  return row;
}

/** The table by ascending ids; the table itself when they ascend already. */
function inOrder(table: FactorTable, rank: number, folder: string): FactorTable {
  if (firstDescent(table.ids) === undefined) return table;
  const rows = ascendingRows(table.ids);
  for (let i = 1; i < rows.length; i++) {
    if (compareIds(table.ids, rows[i - 1], rows[i]) === 0) throw new DataError(`the id ${idText(table.ids, rows[i])} occurs twice`, { phase: 'load', file: folder });
  }
  const factors = new Float32Array(new SharedArrayBuffer(table.factors.byteLength));
  for (const [at, row] of rows.entries()) factors.set(table.factors.subarray(row * rank, (row + 1) * rank), at * rank);
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
  if (foreign !== undefined) throw new DataError(`"${foreign}" does not belong to a model`, { phase: 'load', file: folder });
  if (!names.some((name) => name.endsWith('.parquet'))) throw new DataError('the model has no part files here', { phase: 'load', file: folder });
}
