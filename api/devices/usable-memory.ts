import { totalmem } from 'node:os';

/**
 * A run may exceed its memory budget by up to a fifth, and a container's system ends what exceeds its limit.
 */
const SHARE_OF_LIMIT = 0.8;

/**
 * The limit that the system sets for the memory of this process, such as a container's; undefined if none.
 */
export function memoryLimit(): number | undefined {
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? limit : undefined;
}

/** The memory budget if none is given: the machine's memory, or in a container four fifths of its limit. */
export function usableMemory(): number {
  const limit = memoryLimit();
  return limit === undefined ? totalmem() : Math.floor(SHARE_OF_LIMIT * limit);
}
