import { Field, Int32, Int64, Utf8, vectorFromArray } from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { readFolderName } from './folder-names.ts';

/** Values by column name, decoded from the folders' names; null for Hive's name of null. */
export type PartitionValues = Readonly<Record<string, string | null>>;

export type PartitionColumn = {
  readonly name: string;
  /** int32 or int64 when every value is such a number, utf8 otherwise. */
  readonly type: 'int32' | 'int64' | 'utf8';
};

/** "year=2020/country=de/part-0.parquet" -> { year: "2020", country: "de" } */
export function partitionsOf(path: string): PartitionValues {
  const values: Record<string, string | null> = {};
  for (const folder of path.split(/[\\/]/).slice(0, -1)) {
    const found = readFolderName(folder);
    if (found !== undefined) values[found.column] = found.value;
  }
  return values;
}

/** The typed columns of all files; throws DataError when one file lacks a folder that another has. */
export function partitionColumns(
  files: readonly { readonly file: string; readonly partitions: PartitionValues }[],
): PartitionColumn[] {
  const names = [...new Set(files.flatMap(({ partitions }) => Object.keys(partitions)))];
  for (const { file, partitions } of files) {
    const missing = names.find((name) => !Object.hasOwn(partitions, name));
    if (missing !== undefined) {
      throw new DataError(`other files lie in folders "${missing}=…", this one does not`, {
        phase: 'read',
        file,
        column: missing,
        advice: 'Name files of one layout',
      });
    }
  }
  return names.map((name) => ({
    name,
    type: narrowestType(files.map(({ partitions }) => partitions[name])),
  }));
}

function narrowestType(values: readonly (string | null)[]): PartitionColumn['type'] {
  const known = values.filter((value) => value !== null);
  if (known.length === 0 || !known.every((value) => /^-?\d{1,19}$/.test(value))) return 'utf8';
  const integers = known.map(BigInt);
  // 007 and 7 may be two ids.
  if (new Set(integers).size < new Set(known).size) return 'utf8';
  if (integers.every((value) => BigInt.asIntN(32, value) === value)) return 'int32';
  return integers.every((value) => BigInt.asIntN(64, value) === value) ? 'int64' : 'utf8';
}

export function partitionField({ name, type }: PartitionColumn): Field {
  return new Field(name, type === 'int32' ? new Int32() : type === 'int64' ? new Int64() : new Utf8(), true);
}

/** A column with one value in all rows of a file. */
export type ConstantColumn = PartitionColumn & { readonly value: string | null };

/** The partition columns with the values of one file's folders. */
export function constantsOf(columns: readonly PartitionColumn[], values: PartitionValues): ConstantColumn[] {
  return columns.map((column) => ({ ...column, value: values[column.name] }));
}

/** The column as `rows` times its value. */
export function constantData({ value, ...column }: ConstantColumn, rows: number): Data {
  const typed =
    value === null
      ? null
      : column.type === 'int32'
        ? Number(value)
        : column.type === 'int64'
          ? BigInt(value)
          : value;
  return vectorFromArray(Array(rows).fill(typed), partitionField(column).type).data[0];
}
