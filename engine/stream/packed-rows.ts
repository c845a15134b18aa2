/**
 * Rows as the buffers of their columns, for rows whose columns the reader knows: a piece of an Arrow stream has
 * a schema and messages of its own, and there are a hundred thousand pieces in an exchange. A piece is a
 * sequence of batches:
 *
 *     rows | nulls and bytes of validity, offsets and values of each column: uint32 | the buffers, padded to 8 bytes
 *
 * An Arrow stream starts with ff ff ff ff, which is no number of rows.
 */
import { Data, DataType, makeData, RecordBatch, type Schema, Struct, type TypeMap } from 'apache-arrow';
import { wordsOfType } from '../keys/row-words.ts';
import { copyData } from './join-data.ts';

/** Most rows and bytes of small pieces that are joined into one batch. */
const BATCH_ROWS = 1 << 15;
const BATCH_BYTES = 1 << 22;

/** Numbers of the header for a column. */
const COLUMN_NUMBERS = 4;

type View = ArrayBufferView;
/** Buffers of a column: validity, offsets and values, each in pieces that follow one another. */
type Buffers = readonly [readonly View[], readonly View[], readonly View[]];

interface PackedBatch {
  readonly rows: number;
  readonly columns: readonly { readonly nulls: number; readonly buffers: Buffers }[];
}

/** True if all columns are texts or have a fixed width. */
export function isPackable({ fields }: Schema): boolean {
  return fields.every(
    ({ type }) => DataType.isUtf8(type) || (!DataType.isNull(type) && wordsOfType(type) > 0),
  );
}

/** Collects rows; the columns that are added must stay unchanged until `takeInto`. */
export class PackedRows {
  readonly #types: readonly DataType[];
  readonly #batches: PackedBatch[] = [];
  #pieces: (readonly Data[])[] = [];
  #rows = 0;
  #bytes = 0;
  rows = 0;
  /** Bytes of finished rows. */
  length = 0;

  constructor({ fields }: Schema) {
    this.#types = fields.map(({ type }) => type);
  }

  add(rows: number, columns: readonly Data[]): void {
    this.#pieces.push(columns);
    this.#rows += rows;
    for (const { type, byteLength } of columns) this.#bytes += 4 * wordsOfType(type) * rows || byteLength;
    if (this.#rows >= BATCH_ROWS || this.#bytes >= BATCH_BYTES) this.#endBatch();
  }

  /** Ends the rows. Returns the number of bytes. */
  finish(): number {
    if (this.#rows > 0) this.#endBatch();
    return this.length;
  }

  #endBatch(): void {
    const [pieces, rows] = [this.#pieces, this.#rows];
    [this.#pieces, this.#rows, this.#bytes] = [[], 0, 0];
    const columns = this.#types.map((type, i) =>
      packed(
        type,
        pieces.map((piece) => piece[i]),
      ),
    );
    this.#batches.push({ rows, columns });
    this.rows += rows;
    this.length += headerBytes(columns.length);
    for (const { buffers } of columns) for (const parts of buffers) this.length += padded(bytesOf(parts));
  }

  /** Writes the rows to memory from a multiple of 8 on. */
  takeInto(all: Uint8Array, at: number): void {
    for (const { rows, columns } of this.#batches) {
      const header = new Uint32Array(all.buffer, all.byteOffset + at, 1 + COLUMN_NUMBERS * columns.length);
      header[0] = rows;
      at += headerBytes(columns.length);
      for (const [column, { nulls, buffers }] of columns.entries()) {
        const own = 1 + COLUMN_NUMBERS * column;
        header[own] = nulls;
        for (const [i, parts] of buffers.entries()) {
          header[own + 1 + i] = bytesOf(parts);
          let next = at;
          for (const { buffer, byteOffset, byteLength } of parts) {
            all.set(new Uint8Array(buffer, byteOffset, byteLength), next);
            next += byteLength;
          }
          at += padded(next - at);
        }
      }
    }
    this.#batches.length = 0;
  }
}

function packed(type: DataType, parts: readonly Data[]): PackedBatch['columns'][number] {
  const isPlain = wordsOfType(type) > 0 && !DataType.isBool(type);
  if (isPlain && parts.every(({ nullCount }) => nullCount === 0)) {
    const { stride } = new Data(type, 0, 0);
    const values = parts.map((part) => (part.values as Int32Array).subarray(0, part.length * stride));
    return { nulls: 0, buffers: [[], [], values] };
  }
  const { nullCount, nullBitmap, valueOffsets, values } = copyData(type, parts);
  const some = (view: unknown): View[] => (view === undefined ? [] : [view as View]);
  return {
    nulls: nullCount,
    buffers: [nullCount > 0 ? some(nullBitmap) : [], some(valueOffsets), some(values)],
  };
}

/** The batches of a piece, as views of its memory. */
export function* unpackedRows(given: Uint8Array, schema: Schema): Generator<RecordBatch> {
  // Views of 64-bit numbers must start at a multiple of 8.
  const bytes = given.byteOffset % 8 === 0 ? given : given.slice();
  const struct = new Struct<TypeMap>(schema.fields);
  const types = schema.fields.map(({ type }) => type);
  for (let at = 0; at < bytes.length;) {
    const header = new Uint32Array(bytes.buffer, bytes.byteOffset + at, 1 + COLUMN_NUMBERS * types.length);
    const [length] = header;
    at += headerBytes(types.length);
    const children = types.map((type, column) => {
      const [nulls, validity, offsets, values] = header.subarray(1 + COLUMN_NUMBERS * column);
      const take = <View>(
        size: number,
        Type: {
          new (buffer: ArrayBufferLike, at: number, length: number): View;
          readonly BYTES_PER_ELEMENT: number;
        },
      ): View => {
        const from = at;
        at += padded(size);
        return new Type(bytes.buffer, bytes.byteOffset + from, size / Type.BYTES_PER_ELEMENT);
      };
      const bits = validity > 0 ? take(validity, Uint8Array) : undefined;
      const starts = offsets > 0 ? take(offsets, Int32Array) : undefined;
      const stored = take(values, type.ArrayType as Int32ArrayConstructor);
      return new Data(type, 0, length, nulls, { 0: starts, 1: stored, 2: bits } as never);
    });
    yield new RecordBatch(schema, makeData({ type: struct, length, nullCount: 0, children }));
  }
}

/** True for an Arrow stream. */
export function isIpc(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === 0xff && bytes[2] === 0xff && bytes[3] === 0xff;
}

const headerBytes = (columns: number) => padded(4 * (1 + COLUMN_NUMBERS * columns));
const padded = (bytes: number) => (bytes + 7) & ~7;
const bytesOf = (parts: readonly View[]) => parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
