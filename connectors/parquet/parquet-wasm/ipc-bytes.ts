import { AsyncByteQueue, RecordBatchStreamWriter } from 'apache-arrow';
import type { RecordBatch } from 'apache-arrow';

/** A batch as an Arrow IPC stream. */
export function ipcBytes(batch: RecordBatch): Uint8Array {
  const chunks = new SeparateChunks();
  const writer = new RecordBatchStreamWriter().reset(chunks);
  writer.write(batch);
  writer.finish();
  return chunks.toUint8Array(true);
}

/**
 * The queue joins neighbours that lie in one ArrayBuffer by where they lie. Of two columns over the same memory, as in
 * { user: ids, item: ids }, the second would be lost and what follows taken for it. So a chunk in the memory of the one
 * before is copied.
 */
class SeparateChunks extends AsyncByteQueue {
  private last: ArrayBufferLike | undefined;

  override write(chunk: Uint8Array): void {
    const shared = chunk.buffer === this.last;
    this.last = chunk.buffer;
    super.write(shared ? chunk.slice() : chunk);
  }
}
