import { makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { FactorFlowError } from '../../engine/errors.ts';
import { checkPredicate } from '../../engine/expressions/check.ts';
import { call, columnsOf, type Expression } from '../../engine/expressions/expression.ts';
import { selectedRows } from '../../engine/expressions/select-rows.ts';
import type { SourceParts } from '../../engine/stream/operator.ts';
import { folderData, type PartitionColumn, partitionField, type PartitionValues } from './folder-columns.ts';

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
