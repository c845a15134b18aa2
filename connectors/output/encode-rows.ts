import type { JsonObject } from '../../engine/json.ts';
import type { Partition, PartitionRef } from '../../engine/partition.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { TaskContracts } from '../../engine/run/step.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { type Encoding, formats } from '../formats.ts';

/**
 * The task encode-rows. Input `rows`: an Arrow IPC stream (layout arrow-stream: `bytes` Uint8). Output
 * `bytes` (layout bytes: `bytes` Uint8): the encoded rows, as lines of text or as a Parquet file of one row
 * group (see FileAssembly). `firstRow` is the first row's number in errors.
 */
export interface EncodeTask {
  readonly kernel: 'encode-rows';
  readonly inputs: { readonly rows: PartitionRef };
  readonly outputs: { readonly bytes: PartitionRef };
  readonly params: { readonly encoding: Encoding; readonly firstRow: number };
}

export const encodeContracts: TaskContracts = { 'encode-rows': { rows: 'read', bytes: 'write' } };

/**
 * Encodes the rows of an Arrow IPC stream in this thread. Throws DataError that names the file for values
 * that the format cannot hold.
 */
export async function encodeRows(
  stream: Uint8Array,
  encoding: Encoding,
  firstRow: number,
): Promise<Uint8Array> {
  const { encode } = formats[encoding.format];
  if (encode === undefined) throw new Error(`rows of the format ${encoding.format} are not encoded`);
  return encode(stream, encoding, firstRow);
}

/** The handler of the task, in a thread. */
export async function encodeRowsTask({
  params,
  partition,
}: {
  readonly params: JsonObject;
  partition(name: string): Partition;
}): Promise<TaskOutcome> {
  const { encoding, firstRow } = params as EncodeTask['params'];
  const { rows, columns } = partition('rows');
  const encoded = await encodeRows(columns.bytes as Uint8Array, encoding, firstRow);
  const bytes = sharedArray(Uint8Array, encoded.length);
  bytes.set(encoded);
  return {
    rows,
    bytesDown: bytes.length,
    partitions: { bytes: { layout: 'bytes', rows, columns: { bytes } } },
  };
}
