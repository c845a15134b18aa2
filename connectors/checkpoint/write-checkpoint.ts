import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { JsonObject } from '../../engine/json.ts';
import type { StoredNumbers } from '../../engine/row-parts.ts';
import { appendAll, createFile } from '../output/new-file.ts';
import { bytesOf, FORMAT, partsOf, PIECE_BYTES, STATE, type StoredState, SUMS } from './read-checkpoint.ts';

/** A matrix to write: one array, consecutive parts, or numbers in other files. */
export type WrittenMatrix = Float32Array | readonly Float32Array[] | StoredNumbers;

export function bytesOfMatrices(matrices: Readonly<Record<string, WrittenMatrix>>): number {
  return Object.values(matrices).reduce((sum, matrix) => sum + 4 * lengthOf(matrix), 0);
}

function lengthOf(matrix: WrittenMatrix): number {
  if ('read' in matrix || matrix instanceof Float32Array) return matrix.length;
  return matrix.reduce((sum, { length }) => sum + length, 0);
}

/** Bytes of the numbers [from, to), array by array. Numbers in other files are read piece by piece. */
function* bytesBetween(matrix: WrittenMatrix, from: number, to: number): Generator<Uint8Array> {
  if ('read' in matrix) {
    const step = PIECE_BYTES / 4;
    for (let at = from; at < to; at += step) yield bytesOf(matrix.read(at, Math.min(to, at + step)));
    return;
  }
  let first = 0;
  for (const values of matrix instanceof Float32Array ? [matrix] : matrix) {
    const [begin, end] = [Math.max(0, from - first), Math.min(values.length, to - first)];
    first += values.length;
    if (begin < end) yield bytesOf(values.subarray(begin, end));
  }
}

/** Writes the files of a checkpoint into an empty folder. */
export async function writeCheckpointFiles(
  folder: string,
  iteration: number,
  facts: JsonObject,
  matrices: Readonly<Record<string, WrittenMatrix>>,
): Promise<void> {
  const sums: string[] = [];
  const write = async (name: string, bytes: Iterable<Uint8Array>) =>
    void sums.push(`${await writeHashed(join(folder, name), bytes)}  ${name}\n`);
  const lengths = Object.fromEntries(
    Object.entries(matrices).map(([name, matrix]) => [name, lengthOf(matrix)]),
  );
  for (const [name, matrix] of Object.entries(matrices)) {
    for (const { part, from, to } of partsOf(name, lengths[name]))
      await write(part, bytesBetween(matrix, from, to));
  }
  const state: StoredState = { ...facts, format: FORMAT, iteration, matrices: lengths };
  await write(STATE, [Buffer.from(`${JSON.stringify(state)}\n`)]);
  await writeHashed(join(folder, SUMS), [Buffer.from(sums.join(''))]);
}

async function writeHashed(file: string, arrays: Iterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  const handle = await createFile(file);
  try {
    for (const bytes of arrays) {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.subarray(at, at + PIECE_BYTES);
        hash.update(piece);
        await appendAll(handle, [piece]);
      }
    }
    return hash.digest('hex');
  } finally {
    await handle.close();
  }
}
