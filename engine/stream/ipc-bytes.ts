import {
  AsyncByteQueue,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Dictionary,
  Field,
  makeData,
  Struct,
} from 'apache-arrow';
import { pagedArray, sharedArray } from '../partition.ts';

/**
 * A queue for apache-arrow's writers that keeps all bytes until `take`. The library's own queue merges chunks
 * that are adjacent in one ArrayBuffer: if two columns share memory, as in { user: ids, item: ids }, it loses
 * the second.
 */
export class KeptBytes extends AsyncByteQueue {
  #kept: Uint8Array[] = [];
  #length = 0;

  override write(bytes: Uint8Array): void {
    this.#kept.push(bytes);
    this.#length += bytes.length;
  }

  /** Number of bytes since the last call of `take`. */
  get length(): number {
    return this.#length;
  }

  /** The bytes since the last call. */
  take(): Uint8Array {
    return this.takeInto(new Uint8Array(this.#length), 0);
  }

  /** Like `take`, in shared memory. */
  takeShared(): Uint8Array {
    return this.takeInto(sharedArray(Uint8Array, this.#length), 0);
  }

  /** Like `take`, into the given memory from a position on; returns that memory. */
  takeInto(all: Uint8Array, at: number): Uint8Array {
    for (const bytes of this.#kept) {
      all.set(bytes, at);
      at += bytes.length;
    }
    [this.#kept, this.#length] = [[], 0];
    return all;
  }
}

/** Free buffers of this thread: allocating memory costs more than a copy. */
const idle: Uint8Array[] = [];
const ROOM_BYTES = 1 << 20;
/** Largest buffer that is kept. */
const KEPT_ROOM_BYTES = 1 << 24;

/** Shared memory grows by at most this number of bytes at a time. */
const GROWTH_BYTES = 1 << 22;

/**
 * Like KeptBytes, for batches whose memory is reused for the next batch: bytes are copied immediately. With
 * `most`, they are copied to shared memory that grows in place, so that `takeShared` copies only streams of
 * less than ROOM_BYTES; bytes beyond `most` are counted, and not kept.
 */
export class CopiedBytes extends AsyncByteQueue {
  readonly #most: number | undefined;
  #room = idle.pop() ?? new Uint8Array(ROOM_BYTES);
  #shared: SharedArrayBuffer | undefined;
  #length = 0;

  constructor(most?: number) {
    super();
    this.#most = most;
  }

  override write(bytes: Uint8Array): void {
    const start = this.#length;
    this.#length += bytes.length;
    if (this.#most !== undefined && this.#length > this.#most) return;
    if (this.#length > this.#room.length) this.#grow(start);
    this.#room.set(bytes, start);
  }

  /** Makes room for `#length` bytes, of which `filled` are in the old room. */
  #grow(filled: number): void {
    const old = this.#room;
    if (this.#most === undefined) this.#room = new Uint8Array(2 ** Math.ceil(Math.log2(this.#length)));
    else {
      const shared = (this.#shared ??= new SharedArrayBuffer(0, { maxByteLength: this.#most }));
      const further = Math.min(old.length, GROWTH_BYTES);
      shared.grow(Math.min(this.#most, Math.max(this.#length, old.length + further)));
      this.#room = new Uint8Array(shared);
      if (old.buffer === shared) return;
    }
    this.#room.set(old.subarray(0, filled));
    this.#keepIdle(old);
  }

  #keepIdle(room: Uint8Array): void {
    const isOwn = room.buffer !== this.#shared && room.length >= ROOM_BYTES;
    if (isOwn && room.length <= KEPT_ROOM_BYTES && idle.length < 2) idle.push(room);
  }

  /** Number of bytes so far. */
  get length(): number {
    return this.#length;
  }

  /** The bytes so far; valid until `giveBack`. */
  take(): Uint8Array {
    return this.#room.subarray(0, this.#length);
  }

  /** Ends this queue and frees its buffer for reuse. */
  giveBack(): void {
    this.#keepIdle(this.#room);
    [this.#room, this.#length] = [new Uint8Array(0), 0];
  }

  /** Copies the bytes into memory from a position on, and ends this queue; returns that memory. */
  takeInto(all: Uint8Array, at: number): Uint8Array {
    all.set(this.take(), at);
    this.giveBack();
    return all;
  }

  /** Returns the bytes in shared memory, and ends this queue. */
  takeShared(): Uint8Array {
    if (this.#shared === undefined) return this.takeInto(sharedArray(Uint8Array, this.#length), 0);
    const taken = new Uint8Array(this.#shared, 0, this.#length);
    this.giveBack();
    return taken;
  }
}

/** Bytes that the end of a stream adds. */
const END_BYTES = 8;

/**
 * Rows as an Arrow IPC stream that grows batch by batch. `copies`: the batches are in memory that is reused.
 * `most`: the largest stream that is taken, in bytes, for `takeShared`.
 */
export class RowStream {
  rows = 0;
  readonly #schema: Schema;
  /** Some columns of the batches share a dictionary id. */
  readonly #sharesIds: boolean;
  readonly #bytes: KeptBytes | CopiedBytes;
  readonly #writer: RecordBatchStreamWriter;

  constructor(schema: Schema, copies: boolean, most?: number) {
    this.#schema = ownDictionaryIds(schema);
    this.#sharesIds = this.#schema !== schema;
    this.#bytes = copies
      ? new CopiedBytes(most === undefined ? undefined : most + END_BYTES)
      : new KeptBytes();
    this.#writer = new CountedStreamWriter().reset(this.#bytes, this.#schema);
  }

  /** Number of bytes so far. */
  get length(): number {
    return this.#bytes.length;
  }

  add(batch: RecordBatch): void {
    // All batches get the same schema object: for another one the writer would start a new stream.
    const rows = this.#sharesIds
      ? withOwnIds(batch, this.#schema)
      : new RecordBatch(this.#schema, batch.data);
    this.#writer.write(rows);
    this.rows += batch.numRows;
  }

  /** Ends the stream; returns its bytes in shared memory. */
  takeShared(): Uint8Array {
    this.#writer.finish();
    return this.#bytes.takeShared();
  }

  /** Ends the stream; returns its number of bytes, for `takeInto`. */
  finish(): number {
    this.#writer.finish();
    return this.#bytes.length;
  }

  takeInto(all: Uint8Array, at: number): void {
    this.#bytes.takeInto(all, at);
  }

  /** Ends the stream; returns its bytes, which are valid until `giveBack`. */
  take(): Uint8Array {
    this.#writer.finish();
    return this.#bytes.take();
  }

  /** Frees the buffer for the next stream of this thread. */
  giveBack(): void {
    if (this.#bytes instanceof CopiedBytes) this.#bytes.giveBack();
  }
}

/** apache-arrow's writer counts -1 nulls in a list's column of nulls, which other readers refuse. */
class CountedStreamWriter extends RecordBatchStreamWriter {
  protected override _assembleRecordBatch(batch: RecordBatch) {
    const assembled = super._assembleRecordBatch(batch);
    for (const node of assembled.nodes) if (node.nullCount < 0) node.nullCount = node.length;
    return assembled;
  }
}

interface FinishedStream {
  /** Number of bytes. */
  readonly length: number;
  takeInto(all: Uint8Array, at: number): void;
}

/** Joins finished streams in shared memory; also returns the end of each. */
export function joinStreams(streams: readonly (FinishedStream | undefined)[]): {
  readonly bytes: Uint8Array;
  readonly ends: readonly number[];
} {
  let length = 0;
  const ends = streams.map((stream) => (length += stream?.length ?? 0));
  const bytes = pagedArray(Uint8Array, length);
  for (const [i, stream] of streams.entries()) stream?.takeInto(bytes, i === 0 ? 0 : ends[i - 1]);
  return { bytes, ends };
}

/**
 * The schema with a dictionary id for each column; the same schema if no columns share an id. Columns copied
 * from one column share its id and may have different dictionaries, which Arrow's writers reject.
 */
function ownDictionaryIds(schema: Schema): Schema {
  const types = schema.fields.map(({ type }) => type).filter((type) => type instanceof Dictionary);
  const ids = new Set(types.map(({ id }) => id));
  if (ids.size === types.length) return schema;
  const first = Math.max(...ids) + 1;
  const fields = schema.fields.map(({ name, type, nullable, metadata }, i) => {
    const own =
      type instanceof Dictionary
        ? new Dictionary(type.dictionary, type.indices, first + i, type.isOrdered)
        : type;
    return new Field(name, own, nullable, metadata);
  });
  return new Schema(fields, schema.metadata);
}

/** The same rows under the types of a schema from `ownDictionaryIds`. */
function withOwnIds({ data }: RecordBatch, schema: Schema): RecordBatch {
  const children = data.children.map((child, i) => child.clone(schema.fields[i].type));
  const { length, nullCount } = data;
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length, nullCount, nullBitmap: data.nullBitmap, children }),
  );
}
