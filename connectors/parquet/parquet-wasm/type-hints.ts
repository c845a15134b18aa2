import { DataType } from 'apache-arrow';
import type { Schema } from 'apache-arrow';
import { FileBlob } from './file-blob.ts';

/**
 * In a footer: the key of the writer's own types, between the bytes before it (field and length) and the byte
 * after it. Without this key the decoder uses the types that Parquet itself stores.
 */
const KEY = Buffer.from('\x18\x0cARROW:schema\x18', 'latin1');
/** Position of the colon. */
const COLON = KEY.indexOf(':');

/**
 * True if the writer's types have dictionaries that crash the decoder: of decimals, float16, booleans and
 * others.
 */
export function hasUnreadDictionaries({ fields }: Pick<Schema, 'fields'>): boolean {
  return fields.some(({ type }) =>
    DataType.isDictionary(type)
      ? !isRead(type.dictionary)
      : hasUnreadDictionaries({ fields: type.children ?? [] }),
  );
}

function isRead(type: DataType): boolean {
  if (DataType.isFloat(type)) return type.precision > 0;
  return [
    DataType.isUtf8,
    DataType.isLargeUtf8,
    DataType.isBinary,
    DataType.isLargeBinary,
    DataType.isInt,
    DataType.isDate,
    DataType.isTime,
    DataType.isTimestamp,
  ].some((is) => is(type));
}

/**
 * The file with this key changed, so that the decoder ignores the writer's types; undefined if the footer
 * does not have the key.
 */
export async function withoutHints(file: FileBlob): Promise<FileBlob | undefined> {
  const end = new DataView(await file.slice(file.size - 8).arrayBuffer());
  const start = file.size - 8 - end.getUint32(0, true);
  const at = Buffer.from(await file.slice(start, file.size - 8).arrayBuffer()).lastIndexOf(KEY);
  return at < 0 ? undefined : file.patched(start + at + COLON, Buffer.from('_'));
}
