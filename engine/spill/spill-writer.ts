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
import {
  type ColumnKind,
  columnTypes,
  type Partition,
  type SharedColumn,
  type SpilledPartition,
} from '../partition.ts';
import type { Checksum } from './spilled-partition.ts';

const arrowTypes = {
  Int32Array: Int32,
  Uint32Array: Uint32,
  Float32Array: Float32,
  Float64Array: Float64,
  Uint8Array: Uint8,
  Uint16Array: Uint16,
  BigInt64Array: Int64,
} as const;

/** A column of the file: one piece from each partition that has it. */
interface FileColumn {
  readonly name: string;
  readonly kind: ColumnKind;
  readonly pieces: SharedColumn[];
  /** First element of each partition's piece, in order, and the end. */
  readonly offsets: Int32Array;
  /** The first byte of each piece in the file. */
  readonly places: Map<ArrayBufferView, number>;
}

/** A file's contents in order, as views of the partitions' memory, and the directory of positions. */
export interface SpillFile {
  readonly chunks: readonly Uint8Array[];
  readonly directory: readonly SpilledPartition[];
}

/**
 * Lays out partitions as one Arrow IPC file, without copying them. The file is a record batch with one row
 * for each partition, which has a list of elements for each column. A column that a partition does not have
 * is an empty list. The schema's metadata in the footer has the directory under `partitions`: layout, rows,
 * checksum and columns of each partition, in row order.
 *
 *     offsets list<int32>  indices list<uint32>  values list<float32>
 *     [0, 2, 3]            [4, 9, 0]             [3.5, 1, 5]
 *     [0, 1]               [7]                   [2]
 */
export function spillFile(file: string, partitions: readonly Partition[], checksum: Checksum): SpillFile {
  const columns = columnsOf(partitions);
  const writer = new CollectingWriter();
  const children = [...columns.values()].map((column) => {
    const { kind, offsets } = column;
    // Element types differ between columns; the TypeScript type uses Float32 for all.
    const element = new arrowTypes[kind]() as Float32;
    const length = offsets[partitions.length];
    const data = writer.standIn(column, length) as Float32Array;
    const child = makeData({ type: element, length, nullCount: 0, data });
    const type = new List(new Field('element', element, false));
    return makeData({ type, length: partitions.length, nullCount: 0, valueOffsets: offsets, child });
  });
  const schema = new Schema<TypeMap>(
    [...columns.values()].map(({ name }, c) => new Field(name, children[c].type, false)),
  );
  const type = new Struct<TypeMap>(schema.fields);
  writer.reset(undefined, schema);
  writer.write(
    new RecordBatch(schema, makeData({ type, length: partitions.length, nullCount: 0, children })),
  );
  const directory = partitions.map(({ layout, rows, columns: own, ends }, number): SpilledPartition => {
    let sum = 0;
    const checksums: number[] = [];
    const placed = Object.entries(own).map(([name, column]) => {
      let start = 0;
      for (const end of ends ?? [column.length]) {
        sum = checksum(bytesOf(column.subarray(start, end)), sum);
        checksums.push(sum);
        start = end;
      }
      const kind = kindOf(column);
      const at = columns.get(`${name} ${kind}`)?.places.get(column) ?? 0;
      return [name, { kind, at, length: column.length }] as const;
    });
    const pieces = ends && { pieces: { ends, checksums } };
    return { file, number, layout, rows, checksum: sum, ...pieces, columns: Object.fromEntries(placed) };
  });
  return { chunks: writer.end(directory), directory };
}

function bytesOf({ buffer, byteOffset, byteLength }: SharedColumn): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function columnsOf(partitions: readonly Partition[]): Map<string, FileColumn> {
  const found = new Map<string, FileColumn>();
  for (const [number, { columns }] of partitions.entries())
    for (const [name, column] of Object.entries(columns)) {
      const kind = kindOf(column);
      const own = found.get(`${name} ${kind}`) ?? {
        name,
        kind,
        pieces: [],
        offsets: new Int32Array(partitions.length + 1),
        places: new Map<ArrayBufferView, number>(),
      };
      found.set(`${name} ${kind}`, own);
      own.pieces.push(column);
      own.offsets[number + 1] = column.length;
    }
  for (const { offsets } of found.values())
    for (let i = 1; i < offsets.length; i++) offsets[i] += offsets[i - 1];
  return found;
}

/** Collects the chunks instead of writing them; they are views of the partitions. */
class CollectingWriter extends RecordBatchFileWriter {
  readonly #chunks: Uint8Array[] = [];
  readonly #columns = new Map<ArrayBufferLike, FileColumn>();
  #directory = '';

  /**
   * Returns an array that represents a column in Arrow's data. When Arrow writes this array, the column's
   * pieces are written instead. Its memory is never accessed.
   */
  standIn(column: FileColumn, length: number): SharedColumn {
    const type = columnTypes[column.kind];
    const bytes = length * type.BYTES_PER_ELEMENT;
    // Pages of a growable buffer are allocated at first use, and a shared buffer triggers no garbage
    // collection.
    const buffer = new SharedArrayBuffer(bytes, { maxByteLength: Math.max(1, bytes) });
    this.#columns.set(buffer, column);
    return new type(buffer, 0, length);
  }

  protected override _write(view: ArrayBufferView): this {
    const column = this.#columns.get(view.buffer);
    for (const piece of column?.pieces ?? [view]) {
      const { buffer, byteOffset, byteLength } = piece;
      if (byteLength === 0) continue;
      column?.places.set(piece, this._position);
      this.#chunks.push(new Uint8Array(buffer, byteOffset, byteLength));
      this._position += byteLength;
    }
    return this;
  }

  protected override _writeFooter({ fields }: Schema): this {
    return super._writeFooter(new Schema(fields, new Map([['partitions', this.#directory]])));
  }

  end(directory: readonly SpilledPartition[]): Uint8Array[] {
    this.#directory = JSON.stringify(
      directory.map(({ layout, rows, checksum, pieces, columns }) => ({
        layout,
        rows,
        checksum,
        ...(pieces && { pieces }),
        columns,
      })),
    );
    this.finish();
    return this.#chunks;
  }
}

function kindOf(column: SharedColumn): ColumnKind {
  return column.constructor.name as ColumnKind;
}
