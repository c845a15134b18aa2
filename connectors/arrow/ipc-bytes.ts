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

/** Writes batches of one schema as an Arrow IPC stream. */
export function writeBatchesTo(queue: KeptBytes, batches: readonly RecordBatch[]): void {
  const writer = new RecordBatchStreamWriter().reset(queue, batches[0].schema);
  // The batches get one schema object: another one would make the writer begin again.
  for (const batch of batches) writer.write(new RecordBatch(batches[0].schema, batch.data));
  writer.finish();
}
