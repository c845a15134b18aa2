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
  tableFromIPC,
  Timestamp,
  TimeUnit,
  Utf8,
} from 'apache-arrow';
import type { Footer, SchemaElement } from '../footer.ts';

const units = { ms: TimeUnit.MILLISECOND, us: TimeUnit.MICROSECOND, ns: TimeUnit.NANOSECOND } as const;

/**
 * The columns of a file as the decoder gives them, where all are of common kinds and the writer's own types,
 * if it left them, are the same. Undefined for other files: the decoder tells theirs. It takes a tenth of a
 * second to load, which most files need not wait for.
 *
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

/** True for a flat column of numbers whose stored bytes are those of the Arrow type. */
export function storedAsIs({ schema }: Footer, name: string, type: DataType): boolean {
  // A column inside of another may have the same path as one whose name has a dot.
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
    return tableFromIPC(Buffer.from(arrowSchema, 'base64')).schema.fields;
  } catch {
    return undefined;
  }
}

function typeOf({
  physicalType,
  convertedType,
  logicalType,
  timestamp,
  otherOrder,
}: SchemaElement): DataType | undefined {
  if (otherOrder) return undefined;
  const isPlain = convertedType === undefined && logicalType === undefined;
  const hasSize = (bits: 32 | 64) =>
    isPlain || (convertedType === `INT_${bits}` && (logicalType === undefined || logicalType === 'INTEGER'));
  switch (physicalType) {
    case 'int32':
      return hasSize(32) ? new Int32() : undefined;
    case 'int64':
      if (logicalType === 'TIMESTAMP' && timestamp !== undefined)
        return new Timestamp(units[timestamp.unit], timestamp.utc ? 'UTC' : null);
      return hasSize(64) ? new Int64() : undefined;
    case 'float':
      return isPlain ? new Float32() : undefined;
    case 'double':
      return isPlain ? new Float64() : undefined;
    case 'boolean':
      return isPlain ? new Bool() : undefined;
    case 'byte_array':
      return isPlain
        ? new Binary()
        : convertedType === 'UTF8' || (convertedType === undefined && logicalType === 'STRING')
          ? new Utf8()
          : undefined;
    default:
      return undefined;
  }
}
