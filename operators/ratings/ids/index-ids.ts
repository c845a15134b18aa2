import { DataError, throwIfAborted } from '../../../engine/errors.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { keyArrays, type KeyColumn } from '../../../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { Sink } from '../../../engine/stream/operator.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { blockLimit } from '../../planner/sizes.ts';
import { contracts, type TaskOf, type ValuesOf } from '../../tasks/tasks.ts';
import { ChunkKeeper } from '../sorting/chunk-keeper.ts';
import { leaveRoom, type PairRoom } from '../sorting/pair-room.ts';
import { numberIds, type NumberedChunk } from './number-ids.ts';
import {
  CHUNK_ROWS,
  chunkLimits,
  RatingChunk,
  ratingRows,
  type RatingTypes,
  requireFewer,
  typesOf,
} from '../reading/rating-chunk.ts';

const STAGE = 'index-ids';

/** One chunk of rows: codes of its own, and the maps from those codes to positions among all sorted ids. */
export interface CodedChunk {
  readonly rows: number;
  readonly codes: PartitionRef;
  /** `values` Float32[rows] and, where duplicates need them, `timestamps` Float64[rows]. */
  readonly values: PartitionRef;
  /** Absent where the codes are positions already. */
  readonly userMap?: PartitionRef;
  readonly itemMap?: PartitionRef;
}

export interface IndexedRatings {
  /** Distinct external ids, ascending: position = the number the kernels see. */
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly rows: number;
  /** Ratings of each user and item, by position. */
  readonly userCounts: Int32Array;
  readonly itemCounts: Int32Array;
  readonly chunks: readonly CodedChunk[];
  /** True where users and items have changed places (see relabel): `users` are then the items. */
  readonly swapped?: boolean;
  /** True where memory did not hold the chunks: their codes and values lie in files. */
  readonly spilled?: boolean;
  /** The memory of the chunks, where they lie in one. */
  readonly room?: PairRoom;
}

export interface IndexOptions {
  /** More ratings are a CapacityError; default: those of one block. */
  readonly maximumRows?: number;
  /** Chunks of more ratings than these go to files; default: none. */
  readonly rowsInMemory?: number;
  /** The expected number of ratings, for progress. */
  readonly totalRows?: number;
}

/** Most ratings that are read. */
export function mostRows({ maximumRows = blockLimit.ratings }: IndexOptions): number {
  return maximumRows;
}

/**
 * Numbers users and items 0.. by ascending external id, so that the order of rows doesn't matter. Chunks of
 * about a million rows are numbered by tasks while the next ones are read; their ids are then numbered
 * together. Input: `user`, `item`, `rating` (and `timestamp` where duplicates need it), as SelectRatings
 * gives them.
 *
 */
export class IndexIds implements Sink<IndexedRatings> {
  readonly name = STAGE;
  readonly phase = 'number';
  readonly #options: IndexOptions;

  constructor(options: IndexOptions = {}) {
    this.#options = options;
  }

  describe(): JsonObject {
    return { chunkRows: CHUNK_ROWS };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async consume(input: BatchStream, ctx: ExecutionContext): Promise<IndexedRatings> {
    const types = typesOf(input.schema);
    const started = performance.now();
    const phase = startPhase(ctx.events, 'read', 'ratings', this.#options.totalRows);
    const keeper = new ChunkKeeper(this.#options, ctx);
    const numbering = new Numbering(keeper, ctx);
    const newChunk = () =>
      new RatingChunk(chunkLimits([], 0), types, false, { recycled: numbering.recycled.pop() });
    let chunk = newChunk();
    let rows = 0;
    try {
      for await (const batch of input) {
        const ratings = ratingRows(batch, types);
        for (let from = 0; from < batch.numRows;) {
          from += chunk.append(ratings, from);
          if (!chunk.isFull) continue;
          await numbering.start(chunk);
          chunk = newChunk();
        }
        rows += batch.numRows;
        requireFewer(rows, mostRows(this.#options));
        phase.progress(rows);
      }
      if (chunk.rows > 0) await numbering.start(chunk);
    } finally {
      await numbering.settle();
    }
    throwIfAborted(ctx.signal, 'read');
    ctx.metrics.addStage('read', started, rows);
    const indexed = await indexChunks(numbering.finish(), types, keeper.spilled, ctx);
    phase.end(rows);
    return indexed;
  }
}

/**
 * Numbers the ids of all chunks together, which `spilled` says lie in files. Throws DataError where there are
 * none.
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
  // Chunks with other codes than they were read with have memory of their own.
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

/** The chunks under way: a bounded number is numbered at once, so that reading waits for numbering. */
class Numbering {
  readonly #device: DeviceInfo;
  readonly #keeper: ChunkKeeper;
  readonly #ctx: ExecutionContext;
  readonly #name = dataSetName('ratings');
  readonly #chunks: NumberedChunk[] = [];
  readonly #running = new Set<Promise<void>>();
  /** Chunks that are numbered: the memory of their ids is free. */
  readonly recycled: RatingChunk[] = [];
  #started = 0;
  #failure: unknown;

  constructor(keeper: ChunkKeeper, ctx: ExecutionContext) {
    this.#device = hostDevice(ctx.executor).info;
    this.#keeper = keeper;
    this.#ctx = ctx;
  }

  async start(chunk: RatingChunk): Promise<void> {
    while (this.#running.size > this.#device.parallelism) await Promise.race(this.#running);
    if (this.#failure !== undefined) throw this.#failure;
    const run = this.#number(chunk, this.#started++)
      .catch((error: unknown) => void (this.#failure ??= error))
      .finally(() => {
        this.recycled.push(chunk);
        this.#running.delete(run);
      });
    this.#running.add(run);
  }

  async #number(chunk: RatingChunk, partition: number): Promise<void> {
    const [ids, codes, values, users, items] = ['ids', 'codes', 'values', 'users', 'items'].map(
      (part): PartitionRef => ({ name: `${this.#name}/${part}`, partition, version: 0 }),
    );
    const { place } = this.#device;
    const { rows } = chunk;
    const steps = new StepList(contracts);
    const task: TaskOf<'number-keys'> = {
      kernel: 'number-keys',
      inputs: { ids },
      outputs: { codes, users, items },
      params: { rows },
    };
    steps.task(STAGE, place, task);
    steps.free(STAGE, place, [ids]);
    const given = chunk.ids();
    const columns = { ...keyArrays(given.users, 'user'), ...keyArrays(given.items, 'item') };
    const results = await runSteps(steps.steps, this.#ctx, {
      given: [
        [ids, { layout: 'key-pairs', rows, columns }, place],
        [values, chunk.values(), place],
      ],
    });
    const [summary] = results.of(STAGE) as ValuesOf<'number-keys'>[];
    await this.#keeper.keep({ rows, codes, values });
    this.#chunks[partition] = {
      rows,
      codes,
      values,
      users: { keys: users, summary: summary.users },
      items: { keys: items, summary: summary.items },
    };
  }

  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.race(this.#running);
  }

  /** The numbered chunks, once all have settled. */
  finish(): readonly NumberedChunk[] {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#chunks;
  }
}
