import { DataError } from '../../../engine/errors.ts';
import type { KeyColumn } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { CodedChunk, NumberedChunk, RatingTypes } from '../reading/rating-chunk.ts';
import { leaveRoom, type PairRoom } from '../sorting/pair-room.ts';
import { numberIds } from './number-ids.ts';

export interface IndexedRatings {
  /** Distinct external ids, ascending. Kernels use an id's position here instead of the id. */
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly rows: number;
  /** Ratings of each user and item, by position. */
  readonly userCounts: Int32Array;
  readonly itemCounts: Int32Array;
  readonly chunks: readonly CodedChunk[];
  /** True if users and items are swapped (see relabel): then `users` are the items. */
  readonly swapped?: boolean;
  /** True if the chunks did not fit into memory: their codes and values are in files. */
  readonly spilled?: boolean;
  /** The chunks' shared memory, if they have one. */
  readonly room?: PairRoom;
}

/**
 * Numbers the users and items of all chunks together: ids that were numbered for each chunk separately get
 * positions among all sorted ids. `spilled`: the chunks are in files. Throws DataError for an empty input.
 */
export async function indexChunks(
  numbered: readonly NumberedChunk[],
  types: RatingTypes,
  spilled: boolean,
  ctx: ExecutionContext,
  room?: PairRoom,
): Promise<IndexedRatings> {
  if (numbered.length === 0)
    throw new DataError('no ratings are left to work on', {
      phase: 'read',
      advice: 'Check the input, the split and the policies for bad rows',
    });
  const { users, items, chunks } = await numberIds(numbered, types, spilled, ctx);
  const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0);
  // If ids were recoded, the new codes have their own memory, and the chunks no longer share one.
  const kept =
    room !== undefined && chunks.every(({ codes }, c) => codes === numbered[c].codes) ? { room } : {};
  if (room !== undefined && !('room' in kept)) await leaveRoom(room, false, ctx);
  return {
    ...kept,
    users: users.keys,
    items: items.keys,
    userCounts: users.counts,
    itemCounts: items.counts,
    rows,
    chunks,
    spilled,
  };
}
