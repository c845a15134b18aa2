import { type Data, DataType, Field, makeData, RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import { nullData } from '../../engine/stream/join-data.ts';
import { columnsText, LEFT_OUT } from '../../engine/stream/stream.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import { isUuidField, uuidMetadata } from '../../engine/values/value-texts.ts';
import {
  constantData,
  partitionField,
  type ConstantColumn,
  type PartitionColumn,
} from '../folders/folder-columns.ts';
import { inputName } from './path-kinds.ts';

/** The columns of one file, which may have any format. */
interface FileColumns {
  readonly file: string;
  readonly schema: Schema;
}

/**
 * The schema that all files share: the same names with the same types, in the first file's order. A column is
 * nullable if it is nullable in any file. Throws DataError that names the first file that differs, and the
 * column.
 */
export function commonSchema(files: readonly FileColumns[]): Schema {
  const [first, ...others] = files;
  const nullable = new Set(first.schema.fields.filter((field) => field.nullable).map((field) => field.name));
  for (const other of others) {
    const fields = new Map(other.schema.fields.map((field) => [field.name, field]));
    for (const { name, type } of first.schema.fields) {
      const field = fields.get(name);
      if (field === undefined)
        throw differs(`has no column "${name}", which ${inputName(first.file)} has`, other, name);
      if (String(field.type) !== String(type))
        throw differs(
          `has column "${name}" as ${String(field.type)}, and ${inputName(first.file)} as ${String(type)}`,
          other,
          name,
        );
      if (field.nullable) nullable.add(name);
      fields.delete(name);
    }
    const [extra] = fields.keys();
    if (extra !== undefined)
      throw differs(`has a column "${extra}", which ${inputName(first.file)} lacks`, other, extra);
  }
  return new Schema(
    first.schema.fields.map((field) => {
      const metadata = isUuidField(field) ? uuidMetadata() : undefined;
      return new Field(field.name, field.type, nullable.has(field.name), metadata);
    }),
    leftOutOf(first.schema),
  );
}

function leftOutOf({ metadata }: Schema): Map<string, string> | undefined {
  const leftOut = metadata.get(LEFT_OUT);
  return leftOut === undefined ? undefined : new Map([[LEFT_OUT, leftOut]]);
}

/**
 * The schema of the files' own columns, followed by the columns from the names of their folders. Throws
 * DataError for two columns of one name.
 */
export function withPartitions(stored: Schema, columns: readonly PartitionColumn[], file: string): Schema {
  requireDistinctNames(stored, file);
  const both = columns.find(({ name }) => stored.fields.some((field) => field.name === name));
  if (both !== undefined)
    throw new DataError('the column is in the files and in the names of their folders', {
      phase: 'read',
      file,
      column: both.name,
      advice: "Name the files in place of their folder, to read the files' own column",
    });
  return new Schema([...stored.fields, ...columns.map(partitionField)], leftOutOf(stored));
}

/** The first name that occurs twice. */
export function firstTwice(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}

/** Throws DataError for two columns of one name. */
export function requireDistinctNames({ fields }: Schema, file: string): void {
  const duplicate = firstTwice(fields.map(({ name }) => name));
  if (duplicate !== undefined)
    throw new DataError('two columns have the same name', { phase: 'read', file, column: duplicate });
}

function differs(summary: string, { file }: FileColumns, column: string): DataError {
  return new DataError(`this file ${summary}`, {
    phase: 'read',
    file,
    column,
    advice: 'Read files of one schema together',
  });
}

/**
 * The named columns (all for undefined), in the schema's order. Throws DataError that lists the existing
 * columns.
 */
export function pruneSchema(schema: Schema, columns: readonly string[] | undefined, file?: string): Schema {
  const leftOut = schema.metadata.get(LEFT_OUT);
  if (columns === undefined && leftOut !== undefined)
    throw new DataError(`not all columns can be read; left out, ${leftOut}`, {
      phase: 'read',
      file,
      advice: `Read the others alone, as select does: ${schema.fields.map(({ name }) => name).join(', ')}`,
    });
  if (columns === undefined) return schema;
  const names = schema.fields.map((field) => field.name);
  const known = new Set(names);
  const missing = columns.find((column) => !known.has(column));
  if (missing !== undefined) {
    throw new DataError('there is no such column', {
      phase: 'read',
      column: missing,
      advice: spelled(nearest(missing, names), `The columns are: ${columnsText(schema)}`),
    });
  }
  const wanted = new Set(columns);
  return new Schema(schema.fields.filter((field) => wanted.has(field.name)));
}

/**
 * The batch with the columns of the schema, matched by name, without copying. Columns that the file does not
 * have come from `constants` (the names of its folders).
 */
export function conformBatch(
  batch: RecordBatch,
  schema: Schema,
  constants: readonly ConstantColumn[] = [],
): RecordBatch {
  const at = new Map(batch.schema.fields.map((field, index) => [field.name, index]));
  const children = schema.fields.map(({ name }) => {
    const index = at.get(name);
    if (index !== undefined) return batch.data.children[index];
    const constant = constants.find((column) => column.name === name);
    if (constant === undefined) throw new Error(`no column "${name}"`);
    return constantData(constant, batch.numRows);
  });
  return batchOf(schema, batch.numRows, children);
}

/** A batch without rows. */
export function emptyBatch(schema: Schema): RecordBatch {
  const children = schema.fields.map(({ type }) => emptyData(type));
  return batchOf(schema, 0, children);
}

function emptyData(type: DataType): Data {
  const empty = { length: 0, nullCount: 0 };
  if (DataType.isList(type) || DataType.isMap(type) || DataType.isLargeList(type) || DataType.isUnion(type))
    return nullData(type, 0);
  if (DataType.isFixedSizeList(type)) return makeData({ type, ...empty, child: emptyData(type.valueType) });
  if (DataType.isStruct(type))
    return makeData({ type, ...empty, children: type.children.map((field) => emptyData(field.type)) });
  return makeData({ type });
}
