import { DataType, type Field, Schema, Table, tableToIPC, TimestampMicrosecond } from 'apache-arrow';
import { mapInnermost } from '../../../engine/values/map-fields.ts';
import { uuidMetadata } from '../../../engine/values/uuid-fields.ts';
import type { Footer, SchemaElement } from '../footer.ts';
import { decodeThrift, encodeThrift, structsIn, thrift } from '../write/thrift.ts';
import type { FileBlob } from './file-blob.ts';

/** Key of a footer's metadata with the columns' Arrow types, which the decoder then uses. */
const KEY = 'ARROW:schema';
/** Numbers of fields in parquet.thrift. */
const [METADATA, KEY_FIELD, VALUE_FIELD] = [5, 1, 2];
/** Bytes after the footer: its length and "PAR1". */
const END = 8;

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
 * The types for a file whose writer has stored none and whose times are INT96: microseconds. Nanoseconds, in
 * which the decoder reads INT96 otherwise, only hold the years 1677 to 2262. Undefined for other files.
 */
export function int96Types(footer: Footer, stored: Schema): Schema | undefined {
  if (footer.arrowSchema !== undefined) return undefined;
  const types = mapStored(footer, stored, (field, { physicalType }) =>
    physicalType === 'int96' ? field.clone({ type: new TimestampMicrosecond() }) : field,
  );
  return types === stored ? undefined : types;
}

/** The decoder's schema with UUIDs marked, which it takes for 16 bytes of any kind. */
export function withUuidFields(footer: Footer, stored: Schema): Schema {
  return mapStored(footer, stored, (field, { logicalType }) =>
    logicalType === 'UUID' ? field.clone({ metadata: uuidMetadata() }) : field,
  );
}

/** Changes the innermost fields of a schema, which have an element each in the footer. */
function mapStored(
  { schema: elements }: Footer,
  schema: Schema,
  change: (field: Field, element: SchemaElement) => Field,
): Schema {
  const leaves = elements.filter(({ children }) => children === 0).values();
  const fields = schema.fields.map((field) =>
    mapInnermost(field, (inner) => {
      const { value } = leaves.next();
      return value === undefined ? inner : change(inner, value);
    }),
  );
  return fields.every((field, i) => field === schema.fields[i])
    ? schema
    : new Schema(fields, schema.metadata);
}

/** The file with these types for the decoder; undefined: without types of its writer. */
export async function withTypes(file: FileBlob, types: Schema | undefined): Promise<FileBlob> {
  const end = new DataView(await file.slice(file.size - END).arrayBuffer());
  const start = file.size - END - end.getUint32(0, true);
  const footer = decodeThrift(new Uint8Array(await file.slice(start, file.size - END).arrayBuffer()));
  const entries = footer.has(METADATA) ? structsIn(footer, METADATA) : [];
  const kept = entries.filter((entry) => {
    const key = entry.get(KEY_FIELD);
    return !(key !== undefined && 'bytes' in key && Buffer.from(key.bytes).toString() === KEY);
  });
  if (types !== undefined) {
    const value = Buffer.from(tableToIPC(new Table(types))).toString('base64');
    kept.push(
      new Map([
        [KEY_FIELD, thrift.binary(KEY)],
        [VALUE_FIELD, thrift.binary(value)],
      ]),
    );
  }
  footer.delete(METADATA);
  if (kept.length > 0) footer.set(METADATA, thrift.structs(kept));
  const bytes = encodeThrift(footer);
  const tail = new Uint8Array(bytes.length + END);
  tail.set(bytes);
  new DataView(tail.buffer).setUint32(bytes.length, bytes.length, true);
  tail.set(Buffer.from('PAR1'), bytes.length + 4);
  return file.withTail(start, tail);
}
