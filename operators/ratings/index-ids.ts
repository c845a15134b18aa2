import type { Data } from 'apache-arrow';
import { hostDevice } from '../../engine/run/devices.ts';
import { CapacityError, DataError, throwIfAborted } from '../../engine/errors.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromData, keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keysFromArrays, type KeyType, takeKeys } from '../../engine/keys/key-column.ts';
import type { KeyTable } from '../../engine/keys/key-table.ts';
import { makeKeyTable } from '../../engine/keys/make-key-table.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { startPhase } from '../../engine/phase.ts';
import { giveTo, takeFrom } from '../../engine/run/hand-over.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { ChunkKeeper } from './chunk-keeper.ts';
import { RatingChunk } from './rating-chunk.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';

const STAGE = 'index-ids';

const CHUNK_ROWS = 1 << 20;

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
}

/**
 * Numbers users and items 0.. by ascending external id, so that the order of rows doesn't matter. Chunks of about a
 * million rows are numbered by tasks while the next ones are read; their key lists are then merged.
 * Input: `user`, `item`, `rating` (and `timestamp` where duplicates need it), as SelectRatings gives them.
 */
export class IndexIds implements Sink<IndexedRatings> {
  readonly name = STAGE;
  readonly phase = 'number';
  readonly #maximumRows: number;
  readonly #rowsInMemory: number;
  readonly #totalRows: number | undefined;

  /** `maximumRows`: rows beyond it throw CapacityError at once; `rowsInMemory`: chunks with more of them are spilled; `totalRows`: their expected number, for progress. */
  constructor(options: { readonly maximumRows?: number; readonly rowsInMemory?: number; readonly totalRows?: number } = {}) {
    this.#maximumRows = Math.min(options.maximumRows ?? Number.POSITIVE_INFINITY, 2 ** 31 - 1);
    this.#rowsInMemory = options.rowsInMemory ?? Number.POSITIVE_INFINITY;
    this.#totalRows = options.totalRows;
  }

  describe(): JsonObject {
    return { chunkRows: CHUNK_ROWS };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async consume(input: BatchStream, ctx: ExecutionContext): Promise<IndexedRatings> {
    const [userType, itemType] = ['user', 'item'].map((name) => keyTypeOf(typeOf(input, name), name));
    const timestamps = input.schema.fields.some((field) => field.name === 'timestamp');
    const started = performance.now();
    const phase = startPhase(ctx.events, 'read', 'ratings', this.#totalRows);
    const numbering = new Numbering(this.#rowsInMemory, ctx);
    const newChunk = () => new RatingChunk(CHUNK_ROWS, userType, itemType, timestamps, numbering.recycled.pop());
    let chunk = newChunk();
    let rows = 0;
    try {
      for await (const batch of input) {
        const [users, items] = ['user', 'item'].map((name, i) => keysFromData(child(input, batch.data, name), i === 0 ? userType : itemType));
        const ratings = (child(input, batch.data, 'rating').values as Float32Array).subarray(0, batch.numRows);
        const times = timestamps ? (child(input, batch.data, 'timestamp').values as Float64Array) : undefined;
        for (let from = 0; from < batch.numRows; ) {
          from += chunk.append(users, items, ratings, times, from);
          if (!chunk.isFull) continue;
          await numbering.start(chunk);
          chunk = newChunk();
        }
        rows += batch.numRows;
        this.#checkRows(rows);
        phase.progress(rows);
      }
      if (chunk.rows > 0) await numbering.start(chunk);
    } finally {
      await numbering.settle();
    }
    throwIfAborted(ctx.signal, 'read');
    ctx.metrics.add('read', { rows, milliseconds: performance.now() - started });
    if (rows === 0) throw new DataError('no ratings are left to work on', { phase: 'read', advice: 'Check the input, the split and the policies for bad rows' });
    const result = await numbering.merge(userType, itemType, rows);
    phase.end(rows);
    return result;
  }

  #checkRows(rows: number): void {
    if (rows <= this.#maximumRows) return;
    throw new CapacityError(`more than ${this.#maximumRows.toLocaleString('en')} ratings do not fit`, {
      phase: 'read',
      advice: 'Raise memoryBudget, or train on a part of the data',
    });
  }
}

interface PendingChunk {
  readonly chunk: CodedChunk;
  readonly users: PartitionRef;
  readonly items: PartitionRef;
}

/** The chunks under way: a bounded number is numbered at once, so that reading waits for numbering. */
class Numbering {
  readonly #device: DeviceInfo;
  readonly #ctx: ExecutionContext;
  readonly #name = dataSetName('ratings');
  readonly #chunks: PendingChunk[] = [];
  readonly #keeper: ChunkKeeper;
  readonly #running = new Set<Promise<void>>();
  /** Chunks that are numbered: the memory of their ids is free. */
  readonly recycled: RatingChunk[] = [];
  #failure: unknown;

  constructor(rowsInMemory: number, ctx: ExecutionContext) {
    this.#keeper = new ChunkKeeper(rowsInMemory, ctx);
    this.#device = hostDevice(ctx.executor).info;
    this.#ctx = ctx;
  }

  async start(chunk: RatingChunk): Promise<void> {
    while (this.#running.size > this.#device.parallelism) await Promise.race(this.#running);
    if (this.#failure !== undefined) throw this.#failure;
    const ref = (part: string): PartitionRef => ({ name: `${this.#name}/${part}`, partition: this.#chunks.length, version: 0 });
    const [ids, codes, values, users, items] = ['ids', 'codes', 'values', 'users', 'items'].map(ref);
    this.#chunks.push({
      chunk: { rows: chunk.rows, codes, values, userMap: ref('user-map'), itemMap: ref('item-map') },
      users,
      items,
    });
    const task: TaskOf<'number-keys'> = { kernel: 'number-keys', inputs: { ids }, outputs: { codes, users, items }, params: { rows: chunk.rows } };
    const { place } = this.#device;
    const steps = new StepList(contracts);
    steps.task(STAGE, place, task);
    steps.free(STAGE, place, [ids]);
    const given = [[ids, chunk.ids(), place], [values, { layout: 'values', rows: chunk.rows, columns: chunk.values() }, place]] as const;
    const run = runSteps(steps.steps, this.#ctx, { given })
      .then(() => this.#keeper.keep({ rows: chunk.rows, codes, values }))
      .then(
        () => undefined,
        (error: unknown) => void (this.#failure ??= error),
      )
      .finally(() => {
        this.recycled.push(chunk);
        this.#running.delete(run);
      });
    this.#running.add(run);
  }

  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.race(this.#running);
  }

  async merge(userType: KeyType, itemType: KeyType, rows: number): Promise<IndexedRatings> {
    if (this.#failure !== undefined) throw this.#failure;
    const users = await this.#mergeSide(userType, this.#chunks.map(({ chunk, users: keys }) => [keys, chunk.userMap as PartitionRef]));
    const items = await this.#mergeSide(itemType, this.#chunks.map(({ chunk, items: keys }) => [keys, chunk.itemMap as PartitionRef]));
    return { users: users.keys, items: items.keys, userCounts: users.counts, itemCounts: items.counts, rows, chunks: this.#chunks.map(({ chunk }) => chunk), spilled: this.#keeper.spilled };
  }

  /** Joins the chunks' key lists to one ascending list and makes each chunk's map: its code -> position in the list. */
  async #mergeSide(type: KeyType, chunks: readonly (readonly [keys: PartitionRef, map: PartitionRef])[]): Promise<{ keys: KeyColumn; counts: Int32Array }> {
    const table: KeyTable = makeKeyTable(type);
    const parts: { map: Uint32Array; counts: Int32Array }[] = [];
    const { place } = this.#device;
    for (const { rows, columns } of await takeFrom(this.#ctx, STAGE, place, chunks.map(([keys]) => keys))) {
      const map = sharedArray(Uint32Array, rows);
      table.add(keysFromArrays(columns, 'key'), map);
      parts.push({ map, counts: columns.counts as Int32Array });
    }
    const order = table.ascending();
    const position = new Uint32Array(order.length);
    for (let i = 0; i < order.length; i++) position[order[i]] = i;
    const totals = new Int32Array(order.length);
    for (const { map, counts } of parts) {
      for (let code = 0; code < map.length; code++) {
        map[code] = position[map[code]];
        totals[map[code]] += counts[code];
      }
    }
    await giveTo(this.#ctx, place, chunks.map(([, ref], i) => [ref, mapPartition(parts[i].map)]));
    return { keys: takeKeys(table.keys(), order), counts: totals };
  }
}

/** `map`: the number of each code. */
export function mapPartition(map: Uint32Array): Partition {
  return { layout: 'map', rows: map.length, columns: { map } };
}

function typeOf(input: BatchStream, name: string) {
  const field = input.schema.fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`index-ids needs the column ${name}`);
  return field.type;
}

function child(input: BatchStream, batch: Data, name: string): Data {
  return batch.children[input.schema.fields.findIndex((field) => field.name === name)];
}
