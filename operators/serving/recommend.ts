import { Bool, type Data, Field, Float32, Int32, makeData, RecordBatch, Schema } from 'apache-arrow';
import { startPhase } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysToVector } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  sharedCopy,
} from '../../engine/partition.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { giveTo } from '../../engine/run/run-steps.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Source } from '../../engine/stream/operator.ts';
import { type BatchStream, batchStream } from '../../engine/stream/stream.ts';
import { batchOf } from '../dataflow/row-operator.ts';
import type { RatingBlock } from '../ratings/ratings.ts';
import { arrowTypeOf } from '../ratings/rows/columns.ts';
import { runTask } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';
import type { FactorModel } from './factor-model.ts';
import type { Found, PlacedLists } from './search.ts';
import {
  announceSearch,
  type FoundLists,
  inFlight,
  itemsByNorm,
  NO_ITEM,
  placeItems,
  ranges,
  topLists,
  usersPerTask,
} from './top-lists.ts';

/** Users and items by id. */
type Sides = Pick<FactorModel, 'users' | 'items'>;

/** A way to find the lists of users: its name and settings for plans, and the lists of all users in order. */
export interface ListFinder {
  readonly name: string;
  readonly settings: JsonObject;
  find(ctx: ExecutionContext): AsyncIterable<FoundLists>;
}

export interface ListsOptions {
  /** Length of the lists. */
  readonly n: number;
  /** Names of the result's columns. */
  readonly columns: { readonly user: string; readonly item: string; readonly prediction: string };
  /** Unit in progress reports; default: no reports. */
  readonly unit?: string;
  /** If given, the result has a further column `fallback`, which is true from this user on. */
  readonly fallbackFrom?: number;
  /** Called after all lists were returned, with the number of lists that are shorter than n. */
  readonly onEnd?: (short: number, ctx: ExecutionContext) => void;
}

/**
 * Lists of n items for each user, best first: rows {user, rank: int32 from 1, item, prediction: float32}, in the
 * order of the users. A user with fewer candidates has fewer rows.
 */
export class Recommend implements Source {
  readonly name: string;
  readonly replayable = true;
  readonly #sides: Sides;
  readonly #options: ListsOptions;
  readonly #finder: ListFinder;

  constructor(sides: Sides, options: ListsOptions, finder: ListFinder) {
    [this.#sides, this.#options, this.#finder, this.name] = [sides, options, finder, finder.name];
  }

  describe(): JsonObject {
    return { n: this.#options.n, ...this.#finder.settings };
  }

  async schema(): Promise<Schema> {
    const { users, items } = this.#sides;
    const { columns, fallbackFrom } = this.#options;
    return new Schema([
      new Field(columns.user, arrowTypeOf(users.type), false),
      new Field('rank', new Int32(), false),
      new Field(columns.item, arrowTypeOf(items.type), false),
      new Field(columns.prediction, new Float32(), false),
      ...(fallbackFrom === undefined ? [] : [new Field('fallback', new Bool(), false)]),
    ]);
  }

  async execute(ctx: ExecutionContext): Promise<BatchStream> {
    const schema = await this.schema();
    return batchStream(schema, this.#batches(schema, ctx));
  }

  async *#batches(schema: Schema, ctx: ExecutionContext) {
    const { n, unit, onEnd } = this.#options;
    const users = keyCount(this.#sides.users);
    const phase = unit === undefined ? undefined : startPhase(ctx.events, 'recommend', unit, users);
    let short = 0;
    for await (const found of this.#finder.find(ctx)) {
      phase?.progress(found.to);
      for (let last = n - 1; last < found.items.length; last += n) if (found.items[last] === NO_ITEM) short++;
      const batch = this.#batch(schema, found);
      if (batch.numRows > 0) yield batch;
    }
    phase?.end(users);
    onEnd?.(short, ctx);
  }

  #batch(schema: Schema, { from, items, scores }: FoundLists): RecordBatch {
    const { n, fallbackFrom } = this.#options;
    const users = new Uint32Array(items.length);
    const found = new Uint32Array(items.length);
    const ranks = new Int32Array(items.length);
    const predictions = new Float32Array(items.length);
    let rows = 0;
    for (let user = 0, start = 0; start < items.length; user++, start += n) {
      // If a user has fewer than n candidates, the entries after them are NO_ITEM.
      for (let rank = 0; rank < n && items[start + rank] !== NO_ITEM; rank++) {
        users[rows] = from + user;
        ranks[rows] = rank + 1;
        found[rows] = items[start + rank];
        predictions[rows++] = scores[start + rank];
      }
    }
    const children: Data[] = [
      idData(this.#sides.users, users.subarray(0, rows)),
      makeData({ type: new Int32(), length: rows, data: ranks.subarray(0, rows) }),
      idData(this.#sides.items, found.subarray(0, rows)),
      makeData({ type: new Float32(), length: rows, data: predictions.subarray(0, rows) }),
    ];
    if (fallbackFrom !== undefined) {
      // Lists of users who may be unknown are found one by one, so all rows are of one user.
      const data = new Uint8Array(Math.ceil(rows / 8)).fill(from >= fallbackFrom ? 255 : 0);
      children.push(makeData({ type: new Bool(), length: rows, nullCount: 0, data }));
    }
    return batchOf(schema, rows, children);
  }
}

function idData(ids: KeyColumn, positions: Uint32Array) {
  return keysToVector(takeKeys(ids, positions)).data[0];
}

/**
 * Pairs that must not be recommended: a block over the users and items of the model, made when the stream
 * starts.
 */
type ExcludedPairs = (ctx: ExecutionContext, model: FactorModel) => Promise<RatingBlock>;

/** The n items of highest x_uᵀθ_v for each user of the model, ties by lower item id. */
export function amongAll(model: FactorModel, n: number, excluded?: ExcludedPairs): ListFinder {
  return {
    name: 'recommend',
    settings: { rank: model.rank, exclude: excluded !== undefined },
    find: (ctx) =>
      whileHeld(ctx, async (held) => {
        const { info } = computeDevice(ctx.executor);
        announceSearch('top-n', excluded !== undefined, info, held);
        const sorted = itemsByNorm(model);
        const exclude = await excluded?.(held, model);
        const items = await placeItems(sorted.model, sorted, info.place, held);
        const search = await topLists(items, { model, n, exclude }, info, held);
        const users = ranges(keyCount(model.users), usersPerTask(info, n));
        return mapOrdered(users, inFlight(info), search);
      }),
  };
}

/** Closes the holdings of the search when the last list was taken. */
async function* whileHeld(
  ctx: ExecutionContext,
  search: (held: ExecutionContext) => Promise<AsyncIterable<FoundLists>>,
): AsyncGenerator<FoundLists> {
  const holdings = new Holdings(ctx);
  try {
    yield* await search(holdings.ctx);
  } finally {
    await holdings.close();
  }
}

/** Number of requests in progress at the same time, and of lists in a batch of the result. */
const AT_ONCE = 8;

/**
 * The lists of a few users, equal to the lists of `amongAll`, but found by a separate search for each user.
 * `find` is called for several users at the same time.
 */
export function oneByOne(
  users: number,
  n: number,
  find: (user: number, ctx: ExecutionContext) => Promise<Found>,
): ListFinder {
  const one = async ({ from, to }: RowRange, ctx: ExecutionContext): Promise<FoundLists> => {
    const { positions, scores } = await find(from, ctx);
    const found = { items: new Uint32Array(n).fill(NO_ITEM), scores: new Float32Array(n) };
    found.items.set(positions);
    found.scores.set(scores);
    return { from, to, ...found };
  };
  return {
    name: 'recommend-few',
    settings: { rows: users },
    find: (ctx) => mapOrdered(ranges(users, 1), AT_ONCE, (user) => one(user, ctx)),
  };
}

const STAGE = 'top-n';

/** Users of one task. */
const USERS_OF_TASK = 256;

interface InListsOptions {
  readonly n: number;
  /** Number of lists that are searched for each user. */
  readonly probes: number;
  readonly excluded?: ExcludedPairs | undefined;
  /** 1 for each item that may be found, in shared memory. Default: all. */
  readonly mask?: Uint8Array | undefined;
  /** The index of the items, and a context of the threads that have it. */
  readonly place: (
    ctx: ExecutionContext,
  ) => Promise<{ readonly placed: PlacedLists; readonly ctx: ExecutionContext }>;
}

/** Users and items, and the vectors of the users, of the rank that the lists have. */
type Queries = Omit<FactorModel, 'itemFactors'>;

/** Most of the best items of a catalogue with an index, found in a few lists. */
export function amongLists(
  queries: Queries,
  { n, probes, excluded, mask, place: placeIndex }: InListsOptions,
): ListFinder {
  const { rank, users } = queries;
  const find = async function* (ctx: ExecutionContext) {
    const { placed, ctx: own } = await placeIndex(ctx);
    yield* whileHeld(own, async (held) => {
      const { info } = computeDevice(own.executor);
      const name = dataSetName('top');
      const ref = (part: string, partition = 0) => partitionRef(`${name}/${part}`, partition);
      const given: [PartitionRef, Partition][] = [
        [ref('queries'), vectorsOf(inSharedMemory(queries.userFactors), rank)],
      ];
      if (mask)
        given.push([ref('mask'), { layout: 'item-mask', rows: mask.length, columns: { values: mask } }]);
      await giveTo(held, info.place, given);
      const model = { ...queries, itemFactors: new Float32Array(0) };
      const exclude = await excluded?.({ ...ctx, executor: held.executor }, model);
      const inputs = {
        ...placed.parts,
        queries: ref('queries'),
        ...(mask ? { mask: ref('mask') } : {}),
        ...(exclude ? { exclude: exclude.ref } : {}),
      };
      return mapOrdered(ranges(keyCount(users), USERS_OF_TASK), inFlight(info), async ({ from, to }) => {
        const top = ref('lists', from);
        const params = { ...placed.search, n, probes, from, to };
        const task: TaskOf<'top-n-in-lists'> = { kernel: 'top-n-in-lists', inputs, outputs: { top }, params };
        const { handed } = await runTask(held, STAGE, info.place, task, { handsOut: [top] });
        return { from, to, ...(handed[0].columns as Pick<FoundLists, 'items' | 'scores'>) };
      });
    });
  };
  const settings = { rank, probes, exclude: excluded !== undefined };
  return { name: 'recommend-in-lists', settings, find };
}

function vectorsOf(values: Float32Array, rank: number): Partition {
  return { layout: 'vectors', rows: values.length / rank, columns: { values } };
}

/** The numbers in shared memory, which all tasks read: a copy if they are not there. */
function inSharedMemory(values: Float32Array): Float32Array {
  return values.buffer instanceof SharedArrayBuffer ? values : sharedCopy(values);
}
