/** Bytes of rows of a part: with what operators hold beside them, some times as many for each thread. */
const PART_BYTES = 8 << 20;
const MOST_PARTS = 1024;

/** Fewest bytes that a task takes of an exchange: smaller parts are taken together. */
export const UNIT_BYTES = 4 << 20;

/** Most bytes of a side of a join that every task takes whole. */
export const BROADCAST_BYTES = 16 << 20;

/** Parts of a stream whose bytes are not known. */
export const STREAM_PARTS = 128;

/** The number of parts for rows of so many bytes; it depends on nothing else, as the order of rows does. */
export function partsOf(bytes: number): number {
  return Math.max(1, Math.min(MOST_PARTS, Math.ceil(bytes / PART_BYTES)));
}
