import { startPhase } from '../../../engine/phase.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import { blockLimit } from '../../planner/sizes.ts';
import { indexChunks, type IndexedRatings } from '../ids/index-ids.ts';
import { ChunkKeeper } from '../sorting/chunk-keeper.ts';
import { readChunks } from './read-chunks.ts';

export interface ReadOptions {
  /** Most ratings to read; more throw CapacityError. Default: the limit of one block. */
  readonly maximumRows?: number;
  /** Above this number of ratings, chunks are written to files; default: no limit. */
  readonly rowsInMemory?: number;
  /** The expected number of ratings, for progress. */
  readonly totalRows?: number;
  /** See ChunkOptions. */
  readonly splitBytes?: number;
}

/**
 * Reads the ratings of a plan that ends in SelectRatings, and numbers their users and items. Throws DataError
 * for an empty input.
 */
export async function readRatings(
  plan: LogicalPlan,
  { maximumRows = blockLimit.ratings, rowsInMemory, totalRows, splitBytes }: ReadOptions,
  ctx: ExecutionContext,
): Promise<IndexedRatings> {
  const started = performance.now();
  const keeper = new ChunkKeeper({ rowsInMemory }, ctx);
  const phase = startPhase(ctx.events, 'read', 'ratings', totalRows);
  let rows = 0;
  const onRows = (read: number) => {
    if (read > rows) phase.progress(read);
    rows = read;
  };
  const roomRows = Math.min(blockLimit.ratings, rowsInMemory ?? Number.POSITIVE_INFINITY);
  const { numbered, types, room } = await readChunks(
    plan,
    { maximumRows, roomRows, splitBytes, onRows },
    ctx,
    (chunk) => keeper.keep(chunk),
  );
  ctx.metrics.addStage('read', started, rows);
  using _ = ctx.metrics.begin('number');
  const indexed = await indexChunks(numbered, types, keeper.spilled, ctx, room);
  phase.end(rows);
  return indexed;
}
