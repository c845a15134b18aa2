import { closeSync, openSync, readSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { Partition } from '../engine/partition.ts';
import { openProblem, readPartition, type SpilledPartition } from '../engine/spill/spilled-partition.ts';

/** Reads a partition into new memory of this thread. Throws DataError where its file was changed. */
export function readSpilled(spilled: SpilledPartition): Partition {
  let handle: number;
  try {
    handle = openSync(spilled.file, 'r');
  } catch (error) {
    throw openProblem(error, spilled);
  }
  try {
    const reads = readPartition(spilled, (bytes) => new ArrayBuffer(bytes), crc32);
    let next = reads.next();
    while (!next.done) {
      const { bytes, at } = next.value;
      next = reads.next(readSync(handle, bytes, 0, bytes.length, at));
    }
    return next.value;
  } finally {
    closeSync(handle);
  }
}
