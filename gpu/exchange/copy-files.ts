import { read, write } from 'node:fs';
import type { FileMemory } from '../../engine/partition.ts';

/** Copies in progress. This set keeps their arrays from being garbage-collected. */
const copies = new Set<Promise<void>>();

/**
 * Writes a piece of data to the memory file that it belongs to, on a thread of Node's pool. `at`: the index
 * of the piece's first byte in all the data.
 */
export function writePiece(memory: FileMemory, piece: Uint8Array, at: number): Promise<void> {
  return copy(write, memory, piece, at);
}

/** Reads a piece of data from the memory file that it belongs to; see writePiece. */
export function readPiece(memory: FileMemory, piece: Uint8Array, at: number): Promise<void> {
  return copy(read, memory, piece, at);
}

/** Resolves when no copy is in progress. */
export async function copiesEnded(): Promise<void> {
  await Promise.allSettled(copies);
}

type Copy = (
  file: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
  position: number,
  done: (error: NodeJS.ErrnoException | null, bytes: number) => void,
) => void;

function copy(how: Copy, { files, pieceBytes }: FileMemory, piece: Uint8Array, at: number): Promise<void> {
  const number = Math.floor(at / pieceBytes);
  const file = files[number % files.length];
  const position = Math.floor(number / files.length) * pieceBytes + (at % pieceBytes);
  const ended = new Promise<void>((resolve, reject) => {
    how(file, piece, 0, piece.length, position, (error, bytes) => {
      if (error !== null) reject(error);
      else if (bytes !== piece.length)
        reject(new Error(`${bytes} of ${piece.length} bytes were copied through a file in memory`));
      else resolve();
    });
  });
  copies.add(ended);
  const gone = () => void copies.delete(ended);
  ended.then(gone, gone);
  return ended;
}
