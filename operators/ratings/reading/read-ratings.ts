import { startPhase } from '../../../engine/phase.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { type LogicalPlan, runInto } from '../../../engine/stream/logical-plan.ts';
import { indexChunks, type IndexedRatings, IndexIds, type IndexOptions, mostRows } from '../ids/index-ids.ts';
import { type OnChunks, readSplits, type SplitOptions } from './read-splits.ts';
import { blockLimit } from '../../planner/sizes.ts';
import { ChunkKeeper } from '../sorting/chunk-keeper.ts';

export type ReadOptions = IndexOptions & Pick<SplitOptions, 'splitBytes'>;

/**
 * Reads the ratings of a plan that ends in SelectRatings and numbers their users and items, from splits of
 * the source where it has some, else as IndexIds does.
 */
export async function readRatings(
  plan: LogicalPlan,
  options: ReadOptions,
  ctx: ExecutionContext,
): Promise<IndexedRatings> {
  const started = performance.now();
  const keeper = new ChunkKeeper(options, ctx);
  let [phase, rows] = [undefined as ReturnType<typeof startPhase> | undefined, 0];
  const onChunks: OnChunks = async (chunks, read) => {
    rows = read;
    phase ??= startPhase(ctx.events, 'read', 'ratings', options.totalRows);
    if (rows > 0) phase.progress(rows);
    for (const chunk of chunks) await keeper.keep(chunk);
  };
  const found = await readSplits(
    plan,
    {
      ...options,
      maximumRows: mostRows(options),
      roomRows: Math.min(blockLimit.ratings, options.rowsInMemory ?? Number.POSITIVE_INFINITY),
    },
    ctx,
    onChunks,
  );
  if (found === undefined) return runInto(plan, new IndexIds(options), ctx);
  ctx.metrics.addStage('read', started, rows);
  using _ = ctx.metrics.begin('number');
  const indexed = await indexChunks(found.chunks, found.types, keeper.spilled, ctx, found.room);
  phase?.end(rows);
  return indexed;
}
