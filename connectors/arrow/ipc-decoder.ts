import {
  DataType,
  type Field,
  Message,
  type RecordBatch,
  RecordBatchReader,
  Schema,
  Type,
  type Data,
  type FixedSizeList,
  type Vector,
} from 'apache-arrow';
import { isUtf8 } from 'node:buffer';
import { DataError } from '../../engine/errors.ts';
import { restoreNames } from '../../engine/stream/read-ipc.ts';
import { LEFT_OUT } from '../../engine/stream/stream.ts';
import { unionPlace } from '../../engine/stream/take-data.ts';
import { messageOf } from '../files/file-problem.ts';
import { plainBatches, plainSchema } from '../files/plain-columns.ts';
import { type IpcMessage, registerCodecs } from './ipc-messages.ts';
import { removeEntries, removeUnread, type StoredColumns } from './unread-columns.ts';

/** Bytes of a message before its metadata. */
const PREFIX = 8;

/** Decodes messages into batches. Dictionary columns become plain values, and every batch is checked. */
export class IpcDecoder {
  readonly schema: Schema;
  readonly #reader: RecordBatchReader;
  readonly #queue: Uint8Array[] = [];
  readonly #file: string;
  readonly #columns: StoredColumns | undefined;
  #batches: number;

  /** `firstBatch`: the number of the first batch. Throws DataError for a schema that cannot be read. */
  constructor(schema: IpcMessage, file: string, firstBatch: number) {
    this.#file = file;
    this.#batches = firstBatch;
    registerCodecs();
    try {
      this.#columns = schema.columns ?? removeUnread(schema.head.subarray(PREFIX), 2);
      this.#queue.push(schema.head, schema.body);
      this.#reader = RecordBatchReader.from(this.#pull());
      this.#reader.open();
      restoreNames(this.#reader.schema);
      requireWhole(this.#reader.schema.fields);
      const { fields } = plainSchema(this.#reader.schema);
      this.schema = new Schema(fields, leftOut(this.#columns));
    } catch (error) {
      throw new DataError(`the schema cannot be read: ${messageOf(error)}`, {
        phase: 'read',
        file,
        cause: error,
      });
    }
  }

  /** The rows of the next batch. Yields nothing for a dictionary; later batches use it. */
  decode({ kind, head, body }: IpcMessage): Iterable<RecordBatch> {
    if (kind === 'dictionary') {
      if (this.#uses(head)) this.#queue.push(head, body);
      return [];
    }
    const number = this.#batches++;
    const details = { phase: 'read', file: this.#file };
    let batch: RecordBatch | undefined;
    try {
      if (this.#columns) removeEntries(head.subarray(PREFIX), this.#columns);
      this.#queue.push(head, body);
      batch = (this.#reader.next() as IteratorResult<RecordBatch>).value as RecordBatch | undefined;
      if (batch === undefined) throw new Error('it ends early');
    } catch (error) {
      if (messageOf(error).includes('codec not found')) {
        throw new DataError(
          `batch ${number}: it is compressed by zstd, which needs Node 22.15 or newer, and this is ${process.versions.node}`,
          {
            ...details,
            advice: 'Update Node, or write the data with lz4 or without compression',
            cause: error,
          },
        );
      }
      throw new DataError(`batch ${number}: the data are damaged: ${messageOf(error)}`, {
        ...details,
        cause: error,
      });
    }
    for (const [index, child] of batch.data.children.entries()) {
      try {
        checkData(child, batch.numRows);
      } catch (error) {
        throw new DataError(`batch ${number}: the column cannot be read: ${messageOf(error)}`, {
          ...details,
          column: batch.schema.fields[index].name,
          cause: error,
        });
      }
    }
    return plainBatches(batch);
  }

  /** False for a dictionary of removed columns, whose type is unknown. */
  #uses(dictionary: Uint8Array): boolean {
    if (this.#columns === undefined) return true;
    const message = Message.decode(dictionary.subarray(PREFIX));
    return message.isDictionaryBatch() && this.#reader.schema.dictionaries.has(message.header().id);
  }

  /**
   * Passes the queued messages to apache-arrow's reader, which asks for one chunk in advance; empty chunks
   * make it wait. If it asks for more bytes than its batch has, the data are damaged, and the stream ends
   * after eight empty chunks.
   */
  *#pull(): Generator<Uint8Array> {
    for (let idle = 0; idle < 8;) {
      const next = this.#queue.shift();
      idle = next === undefined ? idle + 1 : 0;
      yield next ?? new Uint8Array(0);
    }
  }
}

function leftOut(columns: StoredColumns | undefined): Map<string, string> | undefined {
  if (columns === undefined) return undefined;
  const reason = 'since their types, run-end encoded, list views or integers of 128 bits, are not read';
  return new Map([[LEFT_OUT, `${reason}: ${columns.removed.join(', ')}`]]);
}

/** Throws for a field without a name, or whose type lacks the fields that it consists of, at any depth. */
function requireWhole(fields: readonly (Field | undefined)[]): void {
  for (const field of fields) {
    if (field?.type === undefined) throw new Error('a nested column has no type');
    if (typeof field.name !== 'string') throw new Error('a column has no name');
    const { type } = field;
    requireWhole(DataType.isDictionary(type) ? (type.dictionary.children ?? []) : (type.children ?? []));
  }
}

/**
 * Checks a decoded column: every value is inside the buffers, and text is UTF-8. apache-arrow itself trusts
 * the metadata and returns undefined for values beyond a buffer. Throws an Error that names the fault.
 */
function checkData(data: Data, length: number): void {
  const { type } = data;
  if (data.length !== length || data.offset !== 0)
    throw new Error(`it has ${data.length} values, need ${length}`);
  if (DataType.isNull(type)) return;
  // A union has no nulls of its own; its columns have.
  if (!DataType.isUnion(type)) checkNulls(data);
  const check = checks[type.typeId];
  if (check === undefined) throw new Error(`it is of type ${String(type)}, which cannot be read`);
  check(data);
}

/** Checks by type. A type without a check cannot be read. */
const checks: Partial<Record<Type, (data: Data) => void>> = {
  [Type.LargeList]: checkList,
  [Type.Map]: checkList,
  [Type.Union]: checkUnion,
  [Type.Interval]: checkWidth,
  [Type.Dictionary]: checkDictionary,
  [Type.Utf8]: checkText,
  [Type.LargeUtf8]: checkText,
  [Type.Binary]: checkBytes,
  [Type.LargeBinary]: checkBytes,
  [Type.Utf8View]: checkViews,
  [Type.BinaryView]: checkViews,
  [Type.List]: checkList,
  [Type.FixedSizeList]: ({ type, length, children: [child] }) =>
    checkChild(child, length * (type as FixedSizeList).listSize),
  [Type.Struct]: ({ length, children }) => children.forEach((child) => checkChild(child, length)),
  [Type.Bool]: ({ values, length }) => need(values.length, (length + 7) >> 3),
  [Type.Int]: checkWidth,
  [Type.Float]: checkWidth,
  [Type.Timestamp]: checkWidth,
  [Type.Date]: checkWidth,
  [Type.Time]: checkWidth,
  [Type.Duration]: checkWidth,
  [Type.Decimal]: checkWidth,
  [Type.FixedSizeBinary]: checkWidth,
};

function checkText(data: Data): void {
  const { first, last } = checkOffsets(data, data.values.length);
  if (!isUtf8((data.values as Uint8Array).subarray(first, last))) throw new Error('its text is not UTF-8');
}

function checkBytes(data: Data): void {
  checkOffsets(data, data.values.length);
}

function checkList(data: Data): void {
  const [child] = data.children;
  checkChild(child, checkOffsets(data, child.length).last);
}

/** Checks a nested column; it may be longer than the rows in use. */
function checkChild(child: Data, length: number): void {
  if (child.length < length) throw new Error(`a nested column has ${child.length} values, need ${length}`);
  checkData(child, child.length);
}

/** Checks that each value of a union is in one of its columns. */
function checkUnion(data: Data): void {
  const { type, children, length, typeIds, valueOffsets } = data;
  if (typeIds.length < length) throw new Error(`it has ${typeIds.length} type ids, need ${length}`);
  for (const child of children) checkChild(child, DataType.isDenseUnion(type) ? child.length : length);
  if (DataType.isDenseUnion(type) && valueOffsets.length < length)
    throw new Error(`it has ${valueOffsets.length} offsets, need ${length}`);
  for (let row = 0; row < length; row++) {
    const { child, at } = unionPlace(data, row);
    if (!(child >= 0 && at >= 0 && at < children[child].length))
      throw new Error(`the value of row ${row + 1} is outside its columns`);
  }
}

/** Checks a column of fixed width. */
function checkWidth({ type, values, length, stride }: Data): void {
  const { byteLength, BYTES_PER_ELEMENT } = values as Uint8Array;
  const element = DataType.isInterval(type) ? stride * BYTES_PER_ELEMENT : BYTES_PER_ELEMENT;
  need(byteLength, length * bytesOf(type, element));
}

function bytesOf(type: DataType, element: number): number {
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  return DataType.isDecimal(type) ? type.bitWidth / 8 : element;
}

function need(have: number, bytes: number): void {
  if (have < bytes) throw new Error(`its values take ${bytes} bytes, and ${have} are there`);
}

function checkNulls({ nullBitmap, nullCount, length }: Data): void {
  const bits = nullBitmap?.length ?? 0;
  if (bits === 0) {
    if (nullCount > 0) throw new Error(`its null count is ${nullCount}, and its bitmap of nulls is missing`);
    return;
  }
  if (bits < (length + 7) >> 3)
    throw new Error(`its bitmap of nulls takes ${(length + 7) >> 3} bytes, and ${bits} are there`);
  let valid = 0;
  for (let byte = 0; byte < length >> 3; byte++) valid += ones(nullBitmap[byte]);
  if (length & 7) valid += ones(nullBitmap[length >> 3] & ((1 << (length & 7)) - 1));
  if (length - valid !== nullCount)
    throw new Error(`its null count is ${nullCount}, and its bitmap of nulls has ${length - valid}`);
}

function ones(byte: number): number {
  const pairs = byte - ((byte >> 1) & 0x55);
  const quads = (pairs & 0x33) + ((pairs >> 2) & 0x33);
  return (quads + (quads >> 4)) & 0x0f;
}

function checkOffsets(data: Data, most: number): { first: number; last: number } {
  const offsets = data.valueOffsets as Int32Array | BigInt64Array;
  // A column without rows may have no offsets.
  if (data.length === 0 && offsets.length === 0) return { first: 0, last: 0 };
  if (offsets.length <= data.length)
    throw new Error(`it has ${offsets.length} offsets, need ${data.length + 1}`);
  for (let i = 0; i < data.length; i++)
    if (offsets[i] > offsets[i + 1])
      throw new Error(`its offsets fall from ${offsets[i]} to ${offsets[i + 1]} in row ${i + 1}`);
  const [first, last] = [Number(offsets[0]), Number(offsets[data.length])];
  if (first < 0 || last > most)
    throw new Error(`its offsets go from ${first} to ${last}, and ${most} values are there`);
  return { first, last };
}

/**
 * Checks views. A view has sixteen bytes: the length, then either the text itself or its first four bytes, a
 * buffer number and an offset.
 */
function checkViews(data: Data): void {
  const bytes = data.values as unknown as Uint8Array;
  const buffers = (data as unknown as { variadicBuffers?: readonly Uint8Array[] }).variadicBuffers ?? [];
  need(bytes.byteLength, 16 * data.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let row = 0; row < data.length; row++) {
    const length = view.getInt32(16 * row, true);
    const [buffer, offset] = [view.getInt32(16 * row + 8, true), view.getInt32(16 * row + 12, true)];
    if (length >= 0 && length <= 12) continue;
    if (length < 0 || !(offset >= 0 && offset + length <= (buffers[buffer]?.length ?? -1)))
      throw new Error(`the text of row ${row + 1} is outside its buffers`);
  }
}

function checkDictionary(data: Data): void {
  const dictionary = (data as unknown as { dictionary?: Vector }).dictionary;
  if (dictionary === undefined) throw new Error('its dictionary is missing');
  for (const part of dictionary.data) checkData(part, part.length);
  const codes = data.values as Int32Array | BigInt64Array;
  if (codes.length < data.length) throw new Error(`it has ${codes.length} codes, need ${data.length}`);
  for (let row = 0; row < data.length; row++) {
    const code = Number(codes[row]);
    if (!(code >= 0 && code < dictionary.length) && data.getValid(row))
      throw new Error(`row ${row + 1} has code ${code} of ${dictionary.length}`);
  }
}
