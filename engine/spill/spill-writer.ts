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
import type { ColumnKind, Partition, SharedColumn } from '../partition.ts';
import type { Checksum, SpilledPartition } from './spilled-partition.ts';

const arrowTypes = {
  Int32Array: Int32,
  Uint32Array: Uint32,
  Float32Array: Float32,
  Float64Array: Float64,
  Uint8Array: Uint8,
  Uint16Array: Uint16,
  BigInt64Array: Int64,
} as const;

/**
 * Partitions as one Arrow IPC file, without copying them. Each is a record batch of one row, with a list of
 * elements for each column; columns that only others have are empty. The schema's metadata in the footer has
 * the directory under `partitions`: layout, rows, checksum and columns of each, in the order of batches.
 *
 *     offsets list<int32>  indices list<uint32>  values list<float32>
 *     [0, 2, 3]            [4, 9, 0]             [3.5, 1, 5]
 *     [0, 1]               [7]                   [2]
 */
export class SpillWriter {
  readonly #file: string;
  readonly #checksum: Checksum;
  readonly #writer = new CollectingWriter();
  readonly #columns = new Map<string, { readonly name: string; readonly type: List<Float32> }>();
  readonly #schema: Schema<TypeMap>;
  readonly #row: Struct<TypeMap>;
  readonly #directory: SpilledPartition[] = [];

  /** `partitions`: at least one with each of the columns that those have which are appended. */
  constructor(file: string, partitions: readonly Partition[], checksum: Checksum) {
    this.#file = file;
    this.#checksum = checksum;
    for (const { columns } of partitions)
      for (const [name, column] of Object.entries(columns)) {
        // The kinds of elements differ from column to column; one stands for all in types.
        const element = new arrowTypes[kindOf(column)]() as Float32;
        const type = new List(new Field('element', element, false));
        this.#columns.set(`${name} ${kindOf(column)}`, { name, type });
      }
    this.#schema = new Schema(
      [...this.#columns.values()].map(({ name, type }) => new Field(name, type, false)),
    );
    this.#row = new Struct<TypeMap>(this.#schema.fields);
    this.#writer.reset(undefined, this.#schema);
  }

  /** The bytes that come next in the file, over the partition's own memory. */
  append({ layout, rows, columns }: Partition): Uint8Array[] {
    const children = [...this.#columns].map(([key, { name, type }]) => {
      const own = columns[name];
      const data = own && key === `${name} ${kindOf(own)}` ? (own as Float32Array) : new Float32Array(0);
      const { length } = data;
      const child = makeData({ type: type.children[0].type, length, nullCount: 0, data });
      return makeData({ type, length: 1, nullCount: 0, valueOffsets: Int32Array.of(0, length), child });
    });
    const row = makeData({ type: this.#row, length: 1, nullCount: 0, children });
    this.#writer.write(new RecordBatch(this.#schema, row));
    let checksum = 0;
    const placed = Object.entries(columns).map(([name, column]) => {
      const { buffer, byteOffset, byteLength, length } = column;
      checksum = this.#checksum(new Uint8Array(buffer, byteOffset, byteLength), checksum);
      return [name, { kind: kindOf(column), at: this.#writer.placeOf(column), length }] as const;
    });
    const [file, number] = [this.#file, this.#directory.length];
    this.#directory.push({ file, number, layout, rows, checksum, columns: Object.fromEntries(placed) });
    return this.#writer.take();
  }

  /** The last bytes of the file, and the places of its partitions. */
  finish(): { readonly bytes: Uint8Array[]; readonly directory: readonly SpilledPartition[] } {
    this.#writer.directory = JSON.stringify(
      this.#directory.map(({ layout, rows, checksum, columns }) => ({ layout, rows, checksum, columns })),
    );
    this.#writer.finish();
    return { bytes: this.#writer.take(), directory: this.#directory };
  }
}

/** Keeps the chunks that it would write, which are views of the columns. */
class CollectingWriter extends RecordBatchFileWriter {
  directory = '';
  #chunks: Uint8Array[] = [];
  #places = new Map<ArrayBufferLike, Map<number, number>>();
  #bytes = 0;

  protected override _write({ buffer, byteOffset, byteLength }: ArrayBufferView): this {
    if (byteLength === 0) return this;
    const places = this.#places.get(buffer) ?? new Map<number, number>();
    this.#places.set(buffer, places.set(byteOffset, this.#bytes));
    this.#chunks.push(new Uint8Array(buffer, byteOffset, byteLength));
    this.#bytes += byteLength;
    this._position += byteLength;
    return this;
  }

  protected override _writeFooter({ fields }: Schema): this {
    return super._writeFooter(new Schema(fields, new Map([['partitions', this.directory]])));
  }

  /** The first byte of a column in the file. */
  placeOf({ buffer, byteOffset, byteLength }: SharedColumn): number {
    if (byteLength === 0) return 0;
    const at = this.#places.get(buffer)?.get(byteOffset);
    if (at === undefined) throw new Error('the Arrow writer copied a column');
    return at;
  }

  /** The chunks since the last call. */
  take(): Uint8Array[] {
    const chunks = this.#chunks;
    [this.#chunks, this.#places] = [[], new Map()];
    return chunks;
  }
}

function kindOf(column: SharedColumn): ColumnKind {
  return column.constructor.name as ColumnKind;
}
