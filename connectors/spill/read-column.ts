import { openSync, readSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { SharedColumn, SpilledPartition } from '../../engine/partition.ts';
import { closeRead } from '../../engine/regular-file.ts';
import { readPartition, readProblem } from '../../engine/spill/spilled-partition.ts';

/** Reads the only column of a partition in this thread. Throws DataError if its file was changed. */
export function readColumn(spilled: SpilledPartition): SharedColumn {
  let handle: number | undefined;
  try {
    handle = openSync(spilled.file, 'r');
    const reads = readPartition(spilled, (bytes) => new ArrayBuffer(bytes), crc32);
    let next = reads.next();
    while (!next.done) {
      const { bytes, at } = next.value;
      next = reads.next(readSync(handle, bytes, 0, bytes.length, at));
    }
    const [column] = Object.values(next.value.columns);
    return column;
  } catch (error) {
    throw readProblem(error, spilled);
  } finally {
    if (handle !== undefined) closeRead(handle);
  }
}
