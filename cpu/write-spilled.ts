import { closeSync, openSync, rmSync, writevSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { Partition } from '../engine/partition.ts';
import { spillFile } from '../engine/spill/spill-writer.ts';
import { writeProblem, type WrittenFile } from '../engine/spill/spilled-partition.ts';
import type { GivenHandlers, MatrixView } from './handler.ts';

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

/**
 * The task `spill`: writes its inputs, named 0, 1, ..., to the new file `params.file`; matrices without their
 * padding. `params.layout`: the layout to write in place of the inputs' own.
 */
export const spill: GivenHandlers[string] = ({ params, hasInput, hasMatrix, matrix, partition, memory }) => {
  const partitions: Partition[] = [];
  for (let name = '0'; hasInput(name); name = `${partitions.length}`) {
    const input = hasMatrix(name) ? withoutPadding(matrix(name), memory) : partition(name);
    partitions.push(params.layout === undefined ? input : { ...input, layout: String(params.layout) });
  }
  return { rows: 0, values: writeSpilled(String(params.file), partitions) };
};

function withoutPadding(
  { pointer, rows, columns, stride }: MatrixView,
  memory: WebAssembly.Memory,
): Partition {
  const padded = new Float32Array(memory.buffer, pointer, rows * stride);
  if (stride === columns) return { layout: 'factors', rows, columns: { values: padded } };
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++)
    values.set(padded.subarray(row * stride, row * stride + columns), row * columns);
  return { layout: 'factors', rows, columns: { values } };
}
