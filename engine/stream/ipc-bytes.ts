import { AsyncByteQueue, RecordBatch, RecordBatchStreamWriter, type Schema } from 'apache-arrow';
import { pagedArray, sharedArray } from '../partition.ts';
import { ownDictionaryIds, withOwnIds } from './own-dictionary-ids.ts';

/**
 * A queue for apache-arrow's writers that keeps all bytes until `take`. The library's own queue joins
 * neighbours in one ArrayBuffer by their addresses: of two columns over the same memory, as in { user: ids,
 * item: ids }, it loses the second.
 */
export class KeptBytes extends AsyncByteQueue {
  #kept: Uint8Array[] = [];
  #length = 0;

  override write(bytes: Uint8Array): void {
    this.#kept.push(bytes);
    this.#length += bytes.length;
  }

  /** Bytes since the last call of `take`. */
  get length(): number {
    return this.#length;
  }

  /** The bytes since the last call. */
  take(): Uint8Array {
    return this.#joined(new Uint8Array(this.#length));
  }

  /** The same in shared memory. */
  takeShared(): Uint8Array {
    return this.#joined(sharedArray(Uint8Array, this.#length));
  }

  /** The same into memory from a position on. */
  takeInto(all: Uint8Array, at: number): void {
    this.#joined(all, at);
  }

  #joined(all: Uint8Array, at = 0): Uint8Array {
    for (const bytes of this.#kept) {
      all.set(bytes, at);
      at += bytes.length;
    }
    [this.#kept, this.#length] = [[], 0];
    return all;
  }
}

/** Rooms that no writer of this thread uses: fresh memory costs more than a copy. */
const idle: Uint8Array[] = [];
const ROOM_BYTES = 1 << 20;
/** The largest room that is kept. */
const KEPT_ROOM_BYTES = 1 << 24;

/** A KeptBytes for batches whose memory is used again for the next batch: the bytes are copied at once. */
export class CopiedBytes extends AsyncByteQueue {
  #room = idle.pop() ?? new Uint8Array(ROOM_BYTES);
  #length = 0;

  override write(bytes: Uint8Array): void {
    const end = this.#length + bytes.length;
    if (end > this.#room.length) {
      const larger = new Uint8Array(2 ** Math.ceil(Math.log2(end)));
      larger.set(this.#room.subarray(0, this.#length));
      this.#room = larger;
    }
    this.#room.set(bytes, this.#length);
    this.#length = end;
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  /** The bytes so far, until `giveBack`. */
  take(): Uint8Array {
    return this.#room.subarray(0, this.#length);
  }

  /** Ends this queue. */
  giveBack(): void {
    if (this.#room.length <= KEPT_ROOM_BYTES && idle.length < 2) idle.push(this.#room);
    [this.#room, this.#length] = [new Uint8Array(0), 0];
  }

  /** The bytes into memory from a position on, and the end of this queue. */
  takeInto(all: Uint8Array, at: number): void {
    all.set(this.take(), at);
    this.giveBack();
  }

  /** The bytes in shared memory, and the end of this queue. */
  takeShared(): Uint8Array {
    const all = sharedArray(Uint8Array, this.#length);
    all.set(this.take());
    this.giveBack();
    return all;
  }
}

/**
 * Rows as an Arrow IPC stream that grows batch by batch. `copies`: the batches are in memory that is used
 * again.
 */
export class RowStream {
  rows = 0;
  readonly #schema: Schema;
  /** Columns of the batches share ids of dictionaries. */
  readonly #sharesIds: boolean;
  readonly #bytes: KeptBytes | CopiedBytes;
  readonly #writer: RecordBatchStreamWriter;

  constructor(schema: Schema, copies: boolean) {
    this.#schema = ownDictionaryIds(schema);
    this.#sharesIds = this.#schema !== schema;
    this.#bytes = copies ? new CopiedBytes() : new KeptBytes();
    this.#writer = new RecordBatchStreamWriter().reset(this.#bytes, this.#schema);
  }

  /** Bytes so far. */
  get length(): number {
    return this.#bytes.length;
  }

  add(batch: RecordBatch): void {
    // The batches get one schema object: another one would make the writer begin again.
    const rows = this.#sharesIds
      ? withOwnIds(batch, this.#schema)
      : new RecordBatch(this.#schema, batch.data);
    this.#writer.write(rows);
    this.rows += batch.numRows;
  }

  /** The bytes in shared memory, and the end of the stream. */
  takeShared(): Uint8Array {
    this.#writer.finish();
    return this.#bytes.takeShared();
  }

  /** The end of the stream; gives its number of bytes, for `takeInto`. */
  finish(): number {
    this.#writer.finish();
    return this.#bytes.length;
  }

  takeInto(all: Uint8Array, at: number): void {
    this.#bytes.takeInto(all, at);
  }

  /** The bytes, which hold until `giveBack`, and the end of the stream. */
  take(): Uint8Array {
    this.#writer.finish();
    return this.#bytes.take();
  }

  /** Leaves the bytes to the next stream of this thread. */
  giveBack(): void {
    if (this.#bytes instanceof CopiedBytes) this.#bytes.giveBack();
  }
}

/** A finished stream. */
interface FinishedStream {
  /** Bytes. */
  readonly length: number;
  takeInto(all: Uint8Array, at: number): void;
}

/** Finished streams one after the other in shared memory, and the end of each. */
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
