import { closeSync, openSync, rmSync, writevSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { Partition } from '../engine/partition.ts';
import { spillFile } from '../engine/spill/spill-writer.ts';
import { writeProblem, type WrittenFile } from '../engine/spill/spilled-partition.ts';
import type { GivenHandlers } from './handler.ts';

/** Most buffers that systems accept in one write (IOV_MAX). */
const MOST_PIECES = 1024;

/** Writes partitions to a new file. If the disk is full, deletes the file and throws CapacityError. */
export function writeSpilled(file: string, partitions: readonly Partition[]): WrittenFile {
  const { chunks, directory } = spillFile(file, partitions, crc32);
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
  try {
    const handle = openSync(file, 'wx', 0o600);
    try {
      let left = chunks;
      while (left.length > 0) {
        let written = writevSync(handle, left.slice(0, MOST_PIECES));
        const whole = left.findIndex(({ length }) => (written -= length) < 0);
        left =
          whole < 0 ? [] : [left[whole].subarray(left[whole].length + written), ...left.slice(whole + 1)];
      }
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    rmSync(file, { force: true });
    throw writeProblem(error, file, bytes);
  }
  return { bytes, directory };
}

/** The task `spill`: writes its inputs, named 0, 1, ..., to the new file `params.file`. */
export const spill: GivenHandlers[string] = ({ params, hasInput, partition }) => {
  const partitions: Partition[] = [];
  while (hasInput(`${partitions.length}`)) partitions.push(partition(`${partitions.length}`));
  return { rows: 0, values: writeSpilled(String(params.file), partitions) };
};
