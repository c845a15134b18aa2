import { AsyncByteQueue, RecordBatch, RecordBatchStreamWriter } from 'apache-arrow';
import { sharedArray } from '../../engine/partition.ts';

/**
 * A queue for apache-arrow's writers that keeps all bytes until `take`. The library's own queue joins
 * neighbours in one ArrayBuffer by their addresses: of two columns over the same memory, as in { user: ids,
 * item: ids }, it loses the second.
 *
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
    const all = Buffer.concat(this.#kept);
    [this.#kept, this.#length] = [[], 0];
    return all;
  }

  /** The same in shared memory. */
  takeShared(): Uint8Array {
    const all = sharedArray(Uint8Array, this.#length);
    let at = 0;
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

/** The same for batches whose memory is used again for the next batch: the bytes are copied at once. */
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

  /** The bytes in shared memory, and the end of this queue. */
  takeShared(): Uint8Array {
    const all = sharedArray(Uint8Array, this.#length);
    all.set(this.#room.subarray(0, this.#length));
    if (this.#room.length <= KEPT_ROOM_BYTES && idle.length === 0) idle.push(this.#room);
    [this.#room, this.#length] = [new Uint8Array(0), 0];
    return all;
  }
}

/** Writes batches of one schema as an Arrow IPC stream. */
export function writeBatchesTo(queue: KeptBytes, batches: readonly RecordBatch[]): void {
  const writer = new RecordBatchStreamWriter().reset(queue, batches[0].schema);
  // The batches get one schema object: another one would make the writer begin again.
  for (const batch of batches) writer.write(new RecordBatch(batches[0].schema, batch.data));
  writer.finish();
}
