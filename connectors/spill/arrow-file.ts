import {
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  Schema,
  Struct,
  Uint16,
  Uint32,
  Uint8,
  type TypeMap,
} from 'apache-arrow';
import type { Partition, SharedColumn } from '../../engine/partition.ts';

const arrowTypes = {
  Int32Array: Int32,
  Uint32Array: Uint32,
  Float32Array: Float32,
  Float64Array: Float64,
  Uint8Array: Uint8,
  Uint16Array: Uint16,
  BigInt64Array: Int64,
} as const;

export type ColumnKind = keyof typeof arrowTypes;

/** A column in a file: the typed array's kind, its first byte, and its length in elements. */
export type PlacedColumn = { readonly kind: ColumnKind; readonly at: number; readonly length: number };

/**
 * A file that is to be written: its bytes in order, over the partitions' own memory, and the place of each
 * column of each partition.
 */
export interface ArrowFile {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  readonly columns: readonly Readonly<Record<string, PlacedColumn>>[];
}

/**
 * Partitions as one Arrow IPC file, without copying them: a record batch of one row, with a column for each
 * column of each partition, which is a list of its elements.
 *
 *     0.offsets list<int32> [[0, 2, 3]]   0.indices list<uint32> [[4, 9, 0]]   0.values list<float32> [[3.5, 1, 5]]
 *
 *
 */
export function arrowFile(partitions: readonly Partition[]): ArrowFile {
  const named = partitions.flatMap(({ columns }, part) =>
    Object.entries(columns).map(([name, column]) => ({
      part,
      name,
      column,
      kind: column.constructor.name as ColumnKind,
    })),
  );
  const lists = named.map(({ column, kind }) => {
    // The kinds of elements differ from column to column.
    const type = new arrowTypes[kind]() as Float32;
    const child = makeData({ type, length: column.length, nullCount: 0, data: column as Float32Array });
    return makeData({
      type: new List(new Field('element', type, false)),
      length: 1,
      nullCount: 0,
      valueOffsets: Int32Array.of(0, column.length),
      child,
    });
  });
  const schema = new Schema(
    named.map(
      ({ part, name }, i) =>
        new Field(`${part}.${name}`, lists[i].type, false, new Map([['layout', partitions[part].layout]])),
    ),
  );
  const writer = new CollectingWriter();
  writer.reset(undefined, schema);
  writer.write(
    new RecordBatch(
      schema,
      makeData({ type: new Struct<TypeMap>(schema.fields), length: 1, nullCount: 0, children: lists }),
    ),
  );
  writer.finish();
  const columns = partitions.map((): Record<string, PlacedColumn> => ({}));
  for (const { part, name, column, kind } of named)
    columns[part][name] = { kind, at: writer.placeOf(column), length: column.length };
  return { chunks: writer.chunks, bytes: writer.bytes, columns };
}

/** Keeps the chunks that it would write, which are views of the columns. */
class CollectingWriter extends RecordBatchFileWriter {
  readonly chunks: Uint8Array[] = [];
  readonly #places = new Map<ArrayBufferLike, Map<number, number>>();
  bytes = 0;

  protected override _write(chunk: ArrayBufferView): this {
    const { buffer, byteOffset, byteLength } = chunk;
    if (byteLength === 0) return this;
    const places = this.#places.get(buffer) ?? new Map<number, number>();
    this.#places.set(buffer, places.set(byteOffset, this.bytes));
    this.chunks.push(new Uint8Array(buffer, byteOffset, byteLength));
    this.bytes += byteLength;
    this._position += byteLength;
    return this;
  }

  /** The first byte of a column in the file. */
  placeOf({ buffer, byteOffset, byteLength }: SharedColumn): number {
    if (byteLength === 0) return 0;
    const at = this.#places.get(buffer)?.get(byteOffset);
    if (at === undefined) throw new Error('the Arrow writer copied a column');
    return at;
  }
}
