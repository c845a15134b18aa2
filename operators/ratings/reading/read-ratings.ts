import type { PartitionRef } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import { blockLimit } from '../../planner/sizes.ts';
import { indexChunks, type IndexedRatings } from '../ids/index-ids.ts';
import { readChunks } from './read-chunks.ts';

interface ReadOptions {
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

interface Kept {
  readonly rows: number;
  readonly codes: PartitionRef;
  readonly values: PartitionRef;
}

/**
 * Keeps chunks of numbered ratings in memory up to a number of rows. With more rows, it moves all chunks to
 * files, and later ones as they arrive.
 */
class ChunkKeeper {
  readonly #most: number;
  readonly #ctx: ExecutionContext;
  readonly #inMemory: Kept[] = [];
  #rows = 0;

  constructor(
    { rowsInMemory = Number.POSITIVE_INFINITY }: { readonly rowsInMemory?: number },
    ctx: ExecutionContext,
  ) {
    this.#most = rowsInMemory;
    this.#ctx = ctx;
  }

  /** True once chunks are written to files. */
  get spilled(): boolean {
    return this.#rows > this.#most;
  }

  /** Accepts a chunk whose partitions are not in use. Resolves when it is stored. */
  async keep(chunk: Kept): Promise<void> {
    const before = this.spilled;
    this.#rows += chunk.rows;
    this.#inMemory.push(chunk);
    if (!this.spilled) return;
    if (!before)
      this.#ctx.events({
        type: 'note',
        text: 'the ratings do not fit into the memory budget while they are loaded: they go by way of files',
      });
    const { place } = hostDevice(this.#ctx.executor).info;
    const steps = new StepList({});
    for (const { codes, values } of this.#inMemory.splice(0)) steps.spill('spill', place, [codes, values]);
    await runSteps(steps.steps, this.#ctx);
  }
}
