import { Bool, Field, Float32, Int32, makeData, RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { keysToVector } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { startPhase } from '../../engine/phase.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Source } from '../../engine/stream/operator.ts';
import { type BatchStream, batchStream } from '../../engine/stream/stream.ts';
import { batchOf } from '../dataflow/row-operator.ts';
import type { RatingBlock } from '../ratings/rating-block.ts';
import { arrowTypeOf } from '../ratings/rows/columns.ts';
import type { FactorModel } from './factor-model.ts';
import type { Found } from './search.ts';
import {
  announceSearch,
  inFlight,
  itemsByNorm,
  NO_ITEM,
  placeItems,
  ranges,
  topLists,
  usersPerTask,
} from './top-lists.ts';

export interface RecommendOptions {
  readonly n: number;
  /**
   * Pairs that must not be recommended: a block over the users and items of the model, made when the stream
   * starts.
   */
  readonly exclude?: (ctx: ExecutionContext, model: FactorModel) => Promise<RatingBlock>;
  /** Names of the result's columns. */
  readonly columns: { readonly user: string; readonly item: string; readonly prediction: string };
  /** Unit in progress reports; default 'users'. */
  readonly unit?: string;
  /** Called after all lists were returned, with the number of lists that are shorter than n. */
  readonly onEnd?: (short: number, ctx: ExecutionContext) => void;
}

/**
 * The n items of highest x_uᵀθ_v for each user of the model, best first, ties by lower item id: rows {user,
 * rank: int32 from 1, item, prediction: float32}, in the order of the model's users. A user with fewer
 * candidates has fewer rows.
 */
export class Recommend implements Source {
  readonly name = 'recommend';
  readonly replayable = true;
  readonly #model: FactorModel;
  readonly #options: RecommendOptions;

  constructor(model: FactorModel, options: RecommendOptions) {
    this.#model = model;
    this.#options = options;
  }

  describe(): JsonObject {
    return { n: this.#options.n, rank: this.#model.rank, exclude: this.#options.exclude !== undefined };
  }

  async schema(): Promise<Schema> {
    return listSchema(this.#model, this.#options.columns);
  }

  async execute(ctx: ExecutionContext): Promise<BatchStream> {
    const schema = await this.schema();
    return batchStream(schema, this.#recommend(schema, ctx));
  }

  async *#recommend(schema: Schema, ctx: ExecutionContext) {
    const holdings = new Holdings(ctx);
    try {
      const { info } = computeDevice(ctx.executor);
      const { exclude: exclusions, n, unit = 'users', onEnd } = this.#options;
      announceSearch('top-n', exclusions !== undefined, info, holdings.ctx);
      const sorted = itemsByNorm(this.#model);
      const exclude = await exclusions?.(holdings.ctx, this.#model);
      const items = await placeItems(sorted.model, sorted, info.place, holdings.ctx);
      const top = await topLists(items, { model: this.#model, n, exclude }, info, holdings.ctx);
      const users = keyCount(this.#model.users);
      const phase = startPhase(ctx.events, 'recommend', unit, users);
      let short = 0;
      for await (const { from, to, items, scores } of mapOrdered(
        ranges(users, usersPerTask(info, n)),
        inFlight(info),
        top,
      )) {
        phase.progress(to);
        for (let last = n - 1; last < items.length; last += n) if (items[last] === NO_ITEM) short++;
        const batch = topBatch(schema, this.#model, from, n, items, scores);
        if (batch.numRows > 0) yield batch;
      }
      phase.end(users);
      onEnd?.(short, ctx);
    } finally {
      await holdings.close();
    }
  }
}

/** The columns of lists. */
export function listSchema(
  { users, items }: Sides,
  { user, item, prediction }: RecommendOptions['columns'],
): Schema {
  return new Schema([
    new Field(user, arrowTypeOf(users.type), false),
    new Field('rank', new Int32(), false),
    new Field(item, arrowTypeOf(items.type), false),
    new Field(prediction, new Float32(), false),
  ]);
}

type Sides = Pick<FactorModel, 'users' | 'items'>;

/** A batch of lists of n items and scores, for users from `firstUser` on. */
export function topBatch(
  schema: Schema,
  model: Sides,
  firstUser: number,
  n: number,
  items: Uint32Array,
  scores: Float32Array,
): RecordBatch {
  const users = new Uint32Array(items.length);
  const found = new Uint32Array(items.length);
  const ranks = new Int32Array(items.length);
  const predictions = new Float32Array(items.length);
  let rows = 0;
  for (let user = 0, start = 0; start < items.length; user++, start += n) {
    // If a user has fewer than n candidates, the entries after them are NO_ITEM.
    for (let rank = 0; rank < n && items[start + rank] !== NO_ITEM; rank++) {
      users[rows] = firstUser + user;
      ranks[rows] = rank + 1;
      found[rows] = items[start + rank];
      predictions[rows++] = scores[start + rank];
    }
  }
  const children = [
    idData(model.users, users.subarray(0, rows)),
    makeData({ type: new Int32(), length: rows, data: ranks.subarray(0, rows) }),
    idData(model.items, found.subarray(0, rows)),
    makeData({ type: new Float32(), length: rows, data: predictions.subarray(0, rows) }),
  ];
  return batchOf(schema, rows, children);
}

function idData(ids: KeyColumn, positions: Uint32Array) {
  return keysToVector(takeKeys(ids, positions)).data[0];
}

/** Number of requests in progress at the same time, and of lists in a batch of the result. */
const AT_ONCE = 8;

interface FewOptions extends Pick<RecommendOptions, 'n' | 'columns'> {
  /**
   * Finds the list of one row. Called once for each row of a stream, and for several rows at the same time.
   */
  readonly find: (row: number, ctx: ExecutionContext) => Promise<Found>;
  /** If given, the result has a further column `fallback`, which is true from this row on. */
  readonly fallbackFrom?: number;
  /** Called with the number of rows whose lists are shorter than n. */
  readonly onEnd?: (short: number, ctx: ExecutionContext) => void;
}

/**
 * Lists of recommendations for a few rows, equal to the lists of `Recommend`, but found by a separate search
 * for each row.
 */
export class RecommendFew implements Source {
  readonly name = 'recommend-few';
  readonly replayable = true;
  readonly #sides: { readonly users: KeyColumn; readonly items: KeyColumn };
  readonly #options: FewOptions;

  constructor(sides: { readonly users: KeyColumn; readonly items: KeyColumn }, options: FewOptions) {
    this.#sides = sides;
    this.#options = options;
  }

  describe(): JsonObject {
    return { n: this.#options.n, rows: keyCount(this.#sides.users) };
  }

  async schema(): Promise<Schema> {
    const { columns, fallbackFrom } = this.#options;
    const schema = listSchema(this.#sides, columns);
    return fallbackFrom === undefined
      ? schema
      : new Schema([...schema.fields, new Field('fallback', new Bool(), false)]);
  }

  async execute(ctx: ExecutionContext): Promise<BatchStream> {
    const schema = await this.schema();
    return batchStream(schema, this.#lists(schema, ctx));
  }

  async *#lists(schema: Schema, ctx: ExecutionContext) {
    const { n, find, columns, fallbackFrom, onEnd } = this.#options;
    const rows = keyCount(this.#sides.users);
    const plain = listSchema(this.#sides, columns);
    let short = 0;
    for await (const { row, positions, scores } of mapOrdered(upTo(rows), AT_ONCE, async (row) => ({
      row,
      ...(await find(row, ctx)),
    }))) {
      if (positions.length < n) short++;
      if (positions.length === 0) continue;
      const items = new Uint32Array(n).fill(NO_ITEM);
      items.set(positions);
      const list = new Float32Array(n);
      list.set(scores);
      const batch = topBatch(plain, this.#sides, row, n, items, list);
      yield fallbackFrom === undefined ? batch : flagged(batch, schema, row >= fallbackFrom);
    }
    onEnd?.(short, ctx);
  }
}

async function* upTo(rows: number): AsyncGenerator<number> {
  for (let row = 0; row < rows; row++) yield row;
}

function flagged({ data, numRows }: RecordBatch, schema: Schema, fallback: boolean): RecordBatch {
  const bits = new Uint8Array(Math.ceil(numRows / 8)).fill(fallback ? 255 : 0);
  const column = makeData({ type: new Bool(), length: numRows, nullCount: 0, data: bits });
  return batchOf(schema, numRows, [...data.children, column]);
}
