import { join } from 'node:path';
import { noEvents } from '../../engine/events.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import type { WritingContext } from '../output/checked-sink.ts';
import { ParquetSink } from '../parquet/parquet-sink.ts';

/**
 * Folder of a model with what each user has rated: {id, items: list of ids, weights: list of float}. A folder
 * of its own, like the means: Spark's `recommendForAll` accepts no further columns in userFactors.
 */
export const HISTORIES = 'userHistories';

/** Rows of a row group, which memory holds while it is written. */
const ROW_GROUP_USERS = 1 << 14;

/** Writes lists by ascending id into the folder of a model. */
export async function writeHistories(
  directory: string,
  lists: BatchStream,
  ctx: Omit<WritingContext, 'events'>,
): Promise<void> {
  const sink = new ParquetSink(join(directory, HISTORIES), { rowGroupSize: ROW_GROUP_USERS });
  await sink.consume(lists, { ...ctx, events: noEvents });
}
