import { DataError } from '../../engine/errors.ts';

/** Stored numbers of ratings as integers. Throws DataError for a value that is not a count. */
export function wholeCounts(counts: Float32Array, folder: string): Uint32Array {
  const wrong = counts.find((count) => !Number.isInteger(count) || count < 0 || count >= 2 ** 32);
  if (wrong !== undefined)
    throw new DataError(`a number of ratings is ${wrong}, need a whole number from 0`, {
      phase: 'load',
      file: folder,
      advice: 'Train the model again',
    });
  return Uint32Array.from(counts);
}
