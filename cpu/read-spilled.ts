import { openSync, readSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { closeRead } from '../engine/regular-file.ts';
import type { Partition, SharedColumn, SpilledPartition } from '../engine/partition.ts';
import { readProblem, readPartition, readPiece } from '../engine/spill/spilled-partition.ts';

/** Reads a partition into new memory of this thread. Throws DataError if its file has been changed. */
export function readSpilled(spilled: SpilledPartition): Partition {
  return readFrom(
    spilled,
    readPartition(spilled, (bytes) => new ArrayBuffer(bytes), crc32),
  );
}

/** Reads one piece of a partition's column into new memory. Throws DataError if its file has been changed. */
export function readSpilledPiece(spilled: SpilledPartition, piece: number): SharedColumn {
  return readFrom(spilled, readPiece(spilled, piece, crc32));
}

function readFrom<Result>(
  spilled: SpilledPartition,
  reads: Generator<{ readonly bytes: Uint8Array; readonly at: number }, Result, number>,
): Result {
  let handle: number;
  try {
    handle = openSync(spilled.file, 'r');
  } catch (error) {
    throw readProblem(error, spilled);
  }
  try {
    let next = reads.next();
    while (!next.done) {
      const { bytes, at } = next.value;
      next = reads.next(readSync(handle, bytes, 0, bytes.length, at));
    }
    return next.value;
  } catch (error) {
    throw readProblem(error, spilled);
  } finally {
    closeRead(handle);
  }
}
