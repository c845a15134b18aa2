import { throwIfAborted } from '../../../engine/errors.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import { optimize } from '../../dataflow/optimize.ts';
import type { PairRoom } from '../sorting/pair-room.ts';
import { type RatingTypes, requireFewer, type ChunkOptions } from './rating-chunk.ts';
import { splitChunks } from './split-chunks.ts';
import { streamChunks } from './stream-chunks.ts';
import type { NumberedChunk } from '../ids/numbered-chunk.ts';

/** All ratings, in the order of rows. */
export interface ReadChunks {
  readonly numbered: readonly NumberedChunk[];
  readonly types: RatingTypes;
  /** The chunks' shared memory, if they have one. */
  readonly room?: PairRoom;
}

/**
 * Reads the ratings of a plan that ends in SelectRatings as chunks; the ids of each chunk are numbered
 * separately. Tasks read the source's splits if it has some, else the calling thread reads. `keep` is called
 * with each chunk as it arrives, and may move it, for example to a file.
 */
export async function readChunks(
  plan: LogicalPlan,
  options: ChunkOptions,
  ctx: ExecutionContext,
  keep: (chunk: NumberedChunk) => Promise<void> = async () => {},
): Promise<ReadChunks> {
  using _ = ctx.metrics.begin('read');
  const onRows = (rows: number) => {
    requireFewer(rows, options.maximumRows);
    options.onRows?.(rows);
  };
  const asked = { ...options, onRows };
  const ready = await optimize(plan, {}, ctx.signal);
  const { chunks, types, room } =
    (await splitChunks(ready, asked, ctx)) ?? (await streamChunks(ready, asked, ctx));
  const numbered: NumberedChunk[] = [];
  let rows = 0;
  for await (const some of chunks) {
    for (const chunk of some) {
      numbered.push(chunk);
      rows += chunk.rows;
      await keep(chunk);
    }
    onRows(rows);
  }
  throwIfAborted(ctx.signal, 'read');
  return { numbered, types, room };
}
