import {
  Binary,
  Bool,
  DataType,
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  Schema,
  Timestamp,
  TimeUnit,
  Utf8,
} from 'apache-arrow';
import { messageMetadata } from '../../arrow/verify-metadata.ts';
import type { Footer, SchemaElement } from '../footer.ts';
import { openIpc } from '../../../engine/stream/read-ipc.ts';

const units = { ms: TimeUnit.MILLISECOND, us: TimeUnit.MICROSECOND, ns: TimeUnit.NANOSECOND } as const;

/**
 * The file's columns in the decoder's types, if all columns are of common kinds and agree with the writer's
 * own types (if stored). Undefined for other files: then the decoder must read the schema. Loading it takes a
 * tenth of a second, which most files avoid.
 */
export function footerSchema({ schema, arrowSchema }: Footer): Schema | undefined {
  const fields = schema.map((element) => {
    const type = element.children > 0 || element.repetition === 'repeated' ? undefined : typeOf(element);
    return type && new Field(element.name, type, element.repetition === 'optional');
  });
  if (!fields.every((field) => field !== undefined)) return undefined;
  if (arrowSchema === undefined) return new Schema(fields);
  const written = writtenTypes(arrowSchema);
  return written?.length === fields.length &&
    fields.every(({ name, type }, i) => written[i].name === name && String(written[i].type) === String(type))
    ? new Schema(fields)
    : undefined;
}

/** True for a flat column of numbers whose stored bytes equal Arrow's. */
export function storedAsIs({ schema }: Footer, name: string, type: DataType): boolean {
  // A name with a dot may also be the path of a nested column, so it is not accepted.
  const found = schema.filter((element) => element.name === name);
  if (found.length !== 1 || found[0].children > 0 || found[0].repetition === 'repeated' || name.includes('.'))
    return false;
  const stored = typeOf(found[0]);
  return (
    stored !== undefined &&
    String(stored) === String(type) &&
    (DataType.isInt(stored) || DataType.isFloat(stored) || DataType.isTimestamp(stored))
  );
}

function writtenTypes(arrowSchema: string): readonly Field[] | undefined {
  try {
    const message = Buffer.from(arrowSchema, 'base64');
    messageMetadata(message);
    return openIpc(message).schema.fields;
  } catch {
    return undefined;
  }
}

/** Types of columns without a converted or logical type. */
const plainTypes: Partial<Record<string, DataType>> = {
  int32: new Int32(),
  int64: new Int64(),
  float: new Float32(),
  double: new Float64(),
  boolean: new Bool(),
  byte_array: new Binary(),
};

const signed: Partial<Record<string, string>> = { int32: 'INT_32', int64: 'INT_64' };

function typeOf({
  physicalType = '',
  convertedType,
  logicalType,
  timestamp,
  otherOrder,
}: SchemaElement): DataType | undefined {
  if (otherOrder) return undefined;
  if (convertedType === undefined && logicalType === undefined) return plainTypes[physicalType];
  if (physicalType === 'byte_array') return isText(convertedType, logicalType) ? new Utf8() : undefined;
  if (physicalType === 'int64' && logicalType === 'TIMESTAMP' && timestamp !== undefined)
    return new Timestamp(units[timestamp.unit], timestamp.utc ? 'UTC' : null);
  // Signed integers of the stored size, under any name that writers use.
  const isSigned = logicalType === undefined || logicalType === 'INTEGER';
  return isSigned && convertedType !== undefined && signed[physicalType] === convertedType
    ? plainTypes[physicalType]
    : undefined;
}

function isText(convertedType: string | undefined, logicalType: string | undefined): boolean {
  return convertedType === undefined ? logicalType === 'STRING' : convertedType === 'UTF8';
}
