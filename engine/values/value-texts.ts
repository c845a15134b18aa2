import {
  type Data,
  DataType,
  DateUnit,
  IntervalUnit,
  type Timestamp,
  type Vector,
  type Field,
  FixedSizeList,
  LargeList,
  List,
  Map_,
  Struct,
} from 'apache-arrow';
import { clockText, DAY, dateText } from '../expressions/civil.ts';
import { decimalAt, decimalText, uuidTexts } from '../keys/arrow-keys.ts';
import { fromHalf } from '../numbers/half.ts';
import { VIEW_BYTES, unionPlace } from '../stream/take-data.ts';

/** Returns the text of the value in a row that is not null. */
export type RowText = (row: number) => string;

/** The values that are written differently for people, for CSV and for names of folders. */
export interface TextStyle {
  readonly float: (value: number, isDouble: boolean) => string;
  readonly timestamp: (count: bigint, type: Timestamp) => string;
}

const MILLISECONDS_OF_DAY = DAY / 1000;

/**
 * Texts of a column of any type, chunk by chunk. Every output of text uses this function, since Arrow's own
 * vectors lose digits of times and decimals, and a byte order mark at the beginning of a text.
 */
export function valueTexts(type: DataType, style: TextStyle): (data: Data) => RowText {
  if (DataType.isUtf8(type) || DataType.isLargeUtf8(type)) return utf8Texts;
  if (DataType.isUtf8View(type)) return bytesTexts(String);
  if (DataType.isDictionary(type))
    return (data) => entryValues(data, 'null', (chunk) => nullableTexts(chunk, style));
  if (DataType.isBool(type))
    return ({ values, offset }) =>
      (row) =>
        (((values as Uint8Array)[(offset + row) >> 3] >> ((offset + row) & 7)) & 1) === 1 ? 'true' : 'false';
  if (DataType.isInt(type)) return ofCounts(String);
  if (DataType.isFloat(type)) return floatTexts(type.precision, style);
  if (DataType.isDecimal(type))
    return ({ values }) =>
      (row) =>
        decimalText(decimalAt(values as unknown as Uint32Array, row, type.bitWidth / 32), type.scale);
  if (DataType.isDate(type))
    return ofCounts((count) =>
      dateText(type.unit === DateUnit.DAY ? Number(count) : Math.floor(Number(count) / MILLISECONDS_OF_DAY)),
    );
  if (DataType.isTimestamp(type)) return ofCounts((count) => style.timestamp(BigInt(count), type));
  if (DataType.isTime(type)) return ofCounts((count) => timeOfDay(BigInt(count), 3 * type.unit));
  if (DataType.isDuration(type)) return ofCounts((count) => durationText(BigInt(count), 3 * type.unit));
  if (isUuid(type))
    return ({ values, length }) => textsAt(uuidTexts(values as unknown as Uint8Array, length));
  return isBytes(type) ? bytesTexts((bytes) => `0x${bytes.toString('hex')}`) : nestedTexts(type, style);
}

/** True for bytes that are not text. */
export function isBytes(type: DataType): boolean {
  if (DataType.isFixedSizeBinary(type)) return !isUuid(type);
  return DataType.isBinary(type) || DataType.isLargeBinary(type) || DataType.isBinaryView(type);
}

/** 16 bytes are taken for a UUID everywhere: as ids, in expressions and as text. */
export function isUuid(type: DataType): boolean {
  return DataType.isFixedSizeBinary(type) && type.byteWidth === 16;
}

/** Types whose values consist of others, and intervals. */
function nestedTexts(type: DataType, style: TextStyle): (data: Data) => RowText {
  if (DataType.isInterval(type)) return intervalTexts(type.unit);
  if (DataType.isMap(type))
    return listTexts((data) => {
      const [keys, values] = data.children.map((child) => nullableTexts(child, style));
      return (row) => `${keys(row)}: ${values(row)}`;
    }, '{}');
  if (isList(type)) return listTexts((data) => nullableTexts(data, style), '[]');
  if (DataType.isStruct(type))
    return ({ children }) => {
      const texts = children.map((child) => nullableTexts(child, style));
      return (row) => `{${type.children.map(({ name }, i) => `${name}: ${texts[i](row)}`).join(', ')}}`;
    };
  if (DataType.isUnion(type))
    return (data) => {
      const texts = data.children.map((child) => nullableTexts(child, style));
      return (row) => {
        const { child, at } = unionPlace(data, row);
        return texts[child](at);
      };
    };
  return () => () => 'null';
}

/** The text of each row, "null" for a null. */
export function nullableTexts(data: Data, style: TextStyle): RowText {
  const text = valueTexts(data.type, style)(data);
  return (row) => (data.nullCount > 0 && !data.getValid(row) ? 'null' : text(row));
}

export function isList(type: DataType): boolean {
  return DataType.isList(type) || DataType.isLargeList(type) || DataType.isFixedSizeList(type);
}

/** The range of a list's elements, or of a map's entries, in the child column. */
export function elementsAt({ type, valueOffsets }: Data, row: number): readonly [from: number, to: number] {
  if (DataType.isFixedSizeList(type)) return [row * type.listSize, (row + 1) * type.listSize];
  return [Number(valueOffsets[row]), Number(valueOffsets[row + 1])];
}

function listTexts(element: (data: Data) => RowText, brackets: string): (data: Data) => RowText {
  return (data) => {
    const text = element(data.children[0]);
    return (row) => {
      const [from, to] = elementsAt(data, row);
      const texts = Array.from({ length: to - from }, (_, i) => text(from + i));
      return `${brackets[0]}${texts.join(', ')}${brackets[1]}`;
    };
  };
}

function utf8Texts({ values, valueOffsets }: Data): RowText {
  return textsAt({ bytes: values as Uint8Array, offsets: valueOffsets });
}

type Offsets = Int32Array | BigInt64Array;

function textsAt({ bytes, offsets }: { readonly bytes: Uint8Array; readonly offsets: Offsets }): RowText {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return (row) => all.toString('utf8', Number(offsets[row]), Number(offsets[row + 1]));
}

/**
 * The bytes of each value of a column of bytes or text views; they share the column's memory. A view is a
 * length, then up to twelve bytes, or four bytes, the number of a buffer and an offset there.
 */
export function bytesAt(data: Data): (row: number) => Uint8Array {
  const { type, values, valueOffsets } = data as Data & { values: Uint8Array };
  if (DataType.isFixedSizeBinary(type))
    return (row) => values.subarray(row * type.byteWidth, (row + 1) * type.byteWidth);
  if (DataType.isBinary(type) || DataType.isLargeBinary(type))
    return (row) => values.subarray(Number(valueOffsets[row]), Number(valueOffsets[row + 1]));
  const { variadicBuffers } = data as unknown as { variadicBuffers: readonly Uint8Array[] };
  const words = new DataView(values.buffer, values.byteOffset, values.byteLength);
  return (row) => {
    const [at, length] = [VIEW_BYTES * row, words.getInt32(VIEW_BYTES * row, true)];
    const start = length <= 12 ? at + 4 : words.getInt32(at + 12, true);
    const bytes = length <= 12 ? values : variadicBuffers[words.getInt32(at + 8, true)];
    return bytes.subarray(start, start + length);
  };
}

function bytesTexts(text: (bytes: Buffer) => string): (data: Data) => RowText {
  return (data) => {
    const bytesOf = bytesAt(data);
    return (row) => {
      const { buffer, byteOffset, length } = bytesOf(row);
      return text(Buffer.from(buffer, byteOffset, length));
    };
  };
}

/** Decodes a dictionary column: each code is replaced by its entry's value, an unknown code by `none`. */
export function entryValues<Value>(
  { values, dictionary }: Data,
  none: Value,
  valuesOf: (chunk: Data) => (row: number) => Value,
): (row: number) => Value {
  const chunks = (dictionary as Vector).data.map((chunk) => ({ rows: chunk.length, of: valuesOf(chunk) }));
  return (row) => {
    let code = Number((values as Int32Array)[row]);
    for (const { rows, of } of chunks) {
      if (code < rows) return of(code);
      code -= rows;
    }
    return none;
  };
}

function ofCounts(text: (count: number | bigint) => string): (data: Data) => RowText {
  return ({ values }) =>
    (row) =>
      text((values as Int32Array | BigInt64Array)[row]);
}

function floatTexts(precision: number, { float }: TextStyle): (data: Data) => RowText {
  return ({ values }) => {
    const numbers = values as Float64Array | Float32Array | Uint16Array;
    if (numbers instanceof Uint16Array) return (row) => float(fromHalf(numbers[row]), true);
    return (row) => float(numbers[row], precision === 2);
  };
}

/** `12:30:00.25`, without trailing zeros of the fraction. `digits`: 10^digits units are a second. */
export function timeOfDay(count: bigint, digits: number): string {
  const { seconds, fraction } = splitSeconds(count, digits);
  const rest = fraction.replace(/0+$/, '');
  return `${clockText(seconds)}${rest === '' ? '' : `.${rest}`}`;
}

/** `2024-01-31 12:30:00.25` */
export function dateAndTime(count: bigint, digits: number): string {
  const { seconds } = splitSeconds(count, digits);
  const day = Math.floor(seconds / 86_400);
  const ofDay = count - BigInt(day) * 86_400n * 10n ** BigInt(digits);
  return `${dateText(day)} ${timeOfDay(ofDay, digits)}`;
}

/** Whole seconds, rounded down, and the digits of the fraction. */
export function splitSeconds(
  count: bigint,
  digits: number,
): { readonly seconds: number; readonly fraction: string } {
  const perSecond = 10n ** BigInt(digits);
  const fraction = ((count % perSecond) + perSecond) % perSecond;
  return {
    seconds: Number((count - fraction) / perSecond),
    fraction: digits === 0 ? '' : String(fraction).padStart(digits, '0'),
  };
}

/** `-1 day 02:03:04.5`: the sign is of the whole duration. */
function durationText(count: bigint, digits: number): string {
  const size = count < 0n ? -count : count;
  const perDay = 86_400n * 10n ** BigInt(digits);
  const days = parts([[Number(size / perDay), 'day']]);
  return `${count < 0n ? '-' : ''}${[...days, timeOfDay(size % perDay, digits)].join(' ')}`;
}

/** `1 year 2 months 3 days 04:05:06.5` */
function intervalTexts(unit: IntervalUnit): (data: Data) => RowText {
  return ({ values, stride }) =>
    (row) => {
      const words = (values as Int32Array).subarray(row * stride, (row + 1) * stride);
      if (unit === IntervalUnit.YEAR_MONTH) return intervalText(words[0], 0, 0n, 0);
      if (unit === IntervalUnit.DAY_TIME) return intervalText(0, words[0], BigInt(words[1]), 3);
      const nanos = (BigInt(words[3]) << 32n) | BigInt(words[2] >>> 0);
      return intervalText(words[0], words[1], nanos, 9);
    };
}

function intervalText(months: number, days: number, count: bigint, digits: number): string {
  const named = parts([
    [Math.trunc(months / 12), 'year'],
    [months % 12, 'month'],
    [days, 'day'],
  ]);
  return count === 0n && named.length > 0
    ? named.join(' ')
    : [...named, durationText(count, digits)].join(' ');
}

function parts(named: readonly (readonly [number, string])[]): string[] {
  return named.flatMap(([count, name]) =>
    count === 0 ? [] : [`${count} ${name}${Math.abs(count) === 1 ? '' : 's'}`],
  );
}

/** Keys of a field's metadata for types that Arrow's formats describe by another type. */
const [NAME, METADATA] = ['ARROW:extension:name', 'ARROW:extension:metadata'];
const UUID = 'arrow.uuid';

/** Arrow's canonical extension: 16 bytes that are a UUID, not a hash or the like. */
export function isUuidField({ type, metadata }: Pick<Field, 'type' | 'metadata'>): boolean {
  return isUuid(type) && metadata.get(NAME) === UUID;
}

export function uuidMetadata(): Map<string, string> {
  return new Map([
    [NAME, UUID],
    [METADATA, ''],
  ]);
}

/**
 * The field with each of its innermost fields changed, in depth-first order; the field itself if none is.
 */
export function mapInnermost(field: Field, change: (field: Field) => Field): Field {
  const { type } = field;
  const inner: Field[] = DataType.isDictionary(type) ? [] : (type.children ?? []);
  if (inner.length === 0) return change(field);
  const fields = inner.map((child) => mapInnermost(child, change));
  if (fields.every((child, i) => child === inner[i])) return field;
  return field.clone({ type: withFields(type, fields) });
}

function withFields(type: DataType, fields: Field[]): DataType {
  if (DataType.isStruct(type)) return new Struct(fields);
  if (DataType.isList(type)) return new List(fields[0]);
  if (DataType.isLargeList(type)) return new LargeList(fields[0]);
  if (DataType.isFixedSizeList(type)) return new FixedSizeList(type.listSize, fields[0]);
  return DataType.isMap(type) ? new Map_(fields[0] as never, type.keysSorted) : type;
}
