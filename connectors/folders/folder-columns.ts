import { type Data, Field, makeData, Utf8, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { DataError, UsageError, FactorFlowError } from '../../engine/errors.ts';
import { castValues, isCastable } from '../../engine/expressions/cast.ts';
import { checkPredicate } from '../../engine/expressions/check.ts';
import { parseTimestamp } from '../../engine/expressions/civil.ts';
import { call, columnsOf, type Expression } from '../../engine/expressions/expression.ts';
import { selectedRows } from '../../engine/expressions/select-rows.ts';
import { arrowTypeOf, isValueType, typeList, type ValueType } from '../../engine/expressions/types.ts';
import type { Values } from '../../engine/expressions/values.ts';
import { writeData } from '../../engine/expressions/write.ts';
import type { SourceParts } from '../../engine/stream/operator.ts';
import { inputName } from '../files/path-kinds.ts';
import { javaText, readFolderName } from './folder-names.ts';

/** Values by column name, decoded from the names of folders; null for Hive's name of null. */
export type PartitionValues = Readonly<Record<string, string | null>>;

/** A column whose values are in the names of folders. */
export type PartitionColumn = {
  readonly name: string;
  readonly type: ValueType;
};

/**
 * Columns from the names of folders such as `year=1999`:
 *
 *     'infer'         types inferred from all values: int32, int64, float64, date, else utf8
 *     'text'          text
 *     'none'          no columns
 *     { name: type }  the given types; others are inferred
 */
export type FolderColumns = 'infer' | 'text' | 'none' | Readonly<Record<string, ValueType>>;

/** Throws UsageError for another value. */
export function checkFolderColumns(partitions: unknown): void {
  if (partitions === undefined || ['infer', 'text', 'none'].includes(partitions as string)) return;
  if (typeof partitions !== 'object' || partitions === null)
    throw new UsageError(
      `partitions must be 'infer', 'text', 'none' or types by column, got ${String(partitions)}`,
      { advice: "For example: { partitions: { year: 'int32' } }" },
    );
  const isKnown = (type: unknown) => isValueType(type) && type !== 'null' && isCastable('utf8', type);
  const unknown: unknown = Object.values(partitions).find((type) => !isKnown(type));
  if (unknown !== undefined)
    throw new UsageError(`unknown column type "${String(unknown)}" in the option partitions`, {
      advice: `Use one of: ${typeList.replace('null, ', '')}`,
    });
}

/**
 * "year=2020/country=de/part-0.parquet" -> { year: "2020", country: "de" }. Throws DataError if two folders
 * have the same column.
 */
export function partitionsOf(path: string): PartitionValues {
  const values: Record<string, string | null> = {};
  for (const folder of path.split(/[\\/]/).slice(0, -1)) {
    const found = readFolderName(folder);
    if (found === undefined) continue;
    if (Object.hasOwn(values, found.column))
      throw new DataError('two folders of this path name the same column', {
        phase: 'read',
        file: inputName(path),
        column: found.column,
        advice: 'Rename one of them, or name the folder that is inside',
      });
    values[found.column] = found.value;
  }
  return values;
}

/** A file, and the values of its folders. */
export interface FileInFolders {
  readonly file: string;
  readonly partitions: PartitionValues;
}

/**
 * The typed columns of all files. Throws DataError that names two files whose folders differ in names or
 * order, and for a value that is not of the type that the caller gives.
 */
export function partitionColumns(
  files: readonly FileInFolders[],
  given: FolderColumns = 'infer',
): PartitionColumn[] {
  if (given === 'none' || files.length === 0) return [];
  const [first] = files;
  const names = Object.keys(first.partitions);
  const layout = layoutText(first);
  const other = files.find((file) => layoutText(file) !== layout);
  if (other !== undefined)
    throw new DataError(`this file is in ${layoutText(other)}, and ${inputName(first.file)} in ${layout}`, {
      phase: 'read',
      file: inputName(other.file),
      advice: 'Read files of one layout together',
    });
  const types = typeof given === 'object' ? given : {};
  const stranger = Object.keys(types).find((name) => !names.includes(name));
  if (stranger !== undefined)
    throw new DataError('the option partitions names a column that no folder has', {
      phase: 'read',
      file: inputName(first.file),
      column: stranger,
      advice:
        names.length === 0 ? 'There are no folders such as year=1999' : `There are: ${names.join(', ')}`,
    });
  return names.map((name) => {
    const values = files.map(({ partitions }) => partitions[name]);
    const type = given === 'text' ? 'utf8' : Object.hasOwn(types, name) ? types[name] : inferredType(values);
    requireType({ name, type }, values, files);
    return { name, type };
  });
}

/** "folders year=…/month=…" */
function layoutText({ partitions }: FileInFolders): string {
  const names = Object.keys(partitions).map((name) => `${name}=…`);
  return names.length === 0 ? 'no folder name=value' : `folders ${names.join('/')}`;
}

function requireType(
  column: PartitionColumn,
  values: readonly (string | null)[],
  files: readonly FileInFolders[],
): void {
  const { failed } = castValues(textValues(values), column.type);
  const at = values.findIndex((value, i) => value !== null && failed?.[i] === 1);
  if (at < 0) return;
  throw new DataError(`the folder's value "${values[at]}" is no ${column.type}`, {
    phase: 'read',
    file: inputName(files[at].file),
    column: column.name,
    advice: 'Set another type in the option partitions, such as utf8',
  });
}

function textValues(values: readonly (string | null)[], constant = false): Values {
  const valid = values.includes(null)
    ? Uint8Array.from(values, (value) => (value === null ? 0 : 1))
    : undefined;
  const texts = values.map((value) => value ?? '');
  return { form: 'text', type: 'utf8', length: values.length, values: texts, valid, constant };
}

export function partitionField({ name, type }: PartitionColumn): Field {
  return new Field(name, arrowTypeOf(type), true);
}

/** A column with one value in all rows of a file. */
export type ConstantColumn = PartitionColumn & { readonly value: string | null };

/** The partition columns with the values of one file's folders. */
export function constantsOf(columns: readonly PartitionColumn[], values: PartitionValues): ConstantColumn[] {
  return columns.map((column) => ({ ...column, value: values[column.name] }));
}

/** The value repeated `rows` times. */
export function constantData({ value, type }: ConstantColumn, rows: number): Data {
  if (type === 'utf8' && value !== null) return repeatedText(value, rows);
  return writeData(castValues(textValues([value], true), type).values, rows);
}

function repeatedText(text: string, rows: number): Data<Utf8> {
  const one = new TextEncoder().encode(text);
  const data = new Uint8Array(one.length * rows);
  if (rows > 0) data.set(one);
  // Each copy appends the filled part to itself and so doubles it.
  for (let filled = one.length; filled > 0 && filled < data.length; filled *= 2)
    data.copyWithin(filled, 0, Math.min(filled, data.length - filled));
  const valueOffsets = new Int32Array(rows + 1);
  for (let row = 0; row < valueOffsets.length; row++) valueOffsets[row] = row * one.length;
  return makeData({ type: new Utf8(), length: rows, nullCount: 0, valueOffsets, data });
}

/** Values of folders as a column, one row a folder. */
export function folderData({ type }: PartitionColumn, values: readonly (string | null)[]): Data {
  return writeData(castValues(textValues(values), type).values, values.length);
}

/** The narrowest of the inferred types that holds all values; null fits every type. */
function inferredType(values: readonly (string | null)[]): 'int32' | 'int64' | 'float64' | 'date' | 'utf8' {
  const known = [...new Set(values.filter((value) => value !== null))];
  if (known.length === 0) return 'utf8';
  if (known.every((value) => /^-?\d{1,19}$/.test(value))) return integerType(known);
  if (isFloats(known)) return 'float64';
  return known.every(isDate) ? 'date' : 'utf8';
}

function integerType(known: readonly string[]): 'int32' | 'int64' | 'utf8' {
  const integers = known.map(BigInt);
  // If both 007 and 7 occur, leading zeros distinguish values (perhaps ids), so they must stay text.
  if (new Set(integers).size < known.length) return 'utf8';
  if (integers.every((value) => BigInt.asIntN(32, value) === value)) return 'int32';
  return integers.every((value) => BigInt.asIntN(64, value) === value) ? 'int64' : 'utf8';
}

/** True if all values are numbers in the form in which programs write them. Versions such as 1.10 are not. */
function isFloats(known: readonly string[]): boolean {
  const numbers = known.map(Number);
  return (
    known.some((value) => /\d/.test(value)) &&
    known.every((value, i) => [javaText(numbers[i]), String(numbers[i])].includes(value)) &&
    new Set(numbers).size === known.length
  );
}

function isDate(value: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(value) && parseTimestamp(value) !== undefined;
}

/**
 * The conditions of a predicate that read only columns from folder names, joined by `and`; undefined if there
 * are none.
 */
export function folderCondition(
  predicate: Expression | undefined,
  columns: readonly PartitionColumn[],
): Expression | undefined {
  if (predicate === undefined || columns.length === 0) return undefined;
  const names = columns.map(({ name }) => name);
  const own = conjuncts(predicate).filter((part) => {
    const read = columnsOf(part);
    return read.length > 0 && read.every((name) => names.includes(name));
  });
  return own.length === 0 ? undefined : own.reduce((all, part) => call('and', all, part));
}

function conjuncts(predicate: Expression): readonly Expression[] {
  return predicate.kind === 'call' && predicate.name === 'and'
    ? predicate.args.flatMap(conjuncts)
    : [predicate];
}

/** The files whose folders meet the condition, evaluated as a filter evaluates it for rows. */
export function filesWithin<File extends { readonly partitions: PartitionValues }>(
  files: readonly File[],
  columns: readonly PartitionColumn[],
  condition: Expression | undefined,
): readonly File[] {
  if (condition === undefined) return files;
  const schema = new Schema(columns.map(partitionField));
  const children = columns.map((column) =>
    folderData(
      column,
      files.map(({ partitions }) => partitions[column.name]),
    ),
  );
  const type = new Struct<TypeMap>(schema.fields);
  const data = makeData({ type, length: files.length, nullCount: 0, children });
  const kept = rowsWhere(condition, new RecordBatch(schema, data));
  return kept === undefined ? files : Array.from(kept, (row) => files[row]);
}

/**
 * Rows that meet the condition. Undefined if its evaluation fails for a value: then no file is left out, and
 * the filter of the rows reports the error.
 */
function rowsWhere(condition: Expression, batch: RecordBatch): Uint32Array | undefined {
  const predicate = checkPredicate(condition, batch.schema);
  try {
    return selectedRows(predicate, batch);
  } catch (error) {
    if (error instanceof FactorFlowError) return undefined;
    throw error;
  }
}

/** Number of folders of all files, and of the files that are read. */
export function folderParts(
  all: readonly { readonly partitions: PartitionValues }[],
  read: readonly { readonly partitions: PartitionValues }[],
): SourceParts {
  const count = (files: typeof all) =>
    new Set(files.map(({ partitions }) => JSON.stringify(Object.values(partitions)))).size;
  return { unit: 'folder', by: 'names', read: count(read), all: count(all) };
}
