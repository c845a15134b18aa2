import { type Field, type RecordBatchReader as Reader, RecordBatchReader, type Schema } from 'apache-arrow';

/** A reader of an Arrow stream or file in memory, whose schema has been read. */
export function openIpc(bytes: Uint8Array): Reader {
  const reader = RecordBatchReader.from(bytes).open();
  restoreNames(reader.schema);
  return reader;
}

/**
 * Names the columns whose name is the empty text: apache-arrow writes no name for them, and reads null. Must
 * be called before batches are read.
 */
export function restoreNames({ fields }: Pick<Schema, 'fields'>): void {
  for (const field of fields as { name: string | null; readonly type: Field['type'] }[]) {
    field.name ??= '';
    restoreNames({ fields: (field.type.children as Field[] | null) ?? [] });
  }
}
