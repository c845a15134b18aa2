import { AsyncByteQueue, RecordBatchStreamWriter } from 'apache-arrow';
import type { RecordBatch } from 'apache-arrow';

/**
 * A queue for apache-arrow's writers that keeps all bytes until `take`. The library's own queue joins neighbours in one
 * ArrayBuffer by their addresses: of two columns over the same memory, as in { user: ids, item: ids }, it loses the second.
 */
export class KeptBytes extends AsyncByteQueue {
  #kept: Uint8Array[] = [];

  override write(bytes: Uint8Array): void {
    this.#kept.push(bytes);
  }

  /** The bytes since the last call. */
  take(): Uint8Array {
    const all = Buffer.concat(this.#kept);
    this.#kept = [];
    return all;
  }
}

/** A batch as an Arrow IPC stream. */
export function ipcBytes(batch: RecordBatch): Uint8Array {
  const bytes = new KeptBytes();
  const writer = new RecordBatchStreamWriter().reset(bytes);
  writer.write(batch);
  writer.finish();
  return bytes.take();
}
