import { Field, Float32, Int32, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { computeDevice } from '../../engine/run/devices.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysToVector } from '../../engine/keys/arrow-keys.ts';
import { keyCount, type KeyColumn, takeKeys } from '../../engine/keys/key-column.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Source } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { startPhase } from '../../engine/phase.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { arrowTypeOf } from '../ratings/rows/columns.ts';
import { announceSearch } from './announce-search.ts';
import type { FactorModel } from './factor-model.ts';
import { itemsByNorm } from './items-by-norm.ts';
import type { RatingBlock } from '../ratings/rating-block.ts';
import { inFlight, NO_ITEM, placeItems, ranges, topLists, usersPerTask } from './top-lists.ts';

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
  return new RecordBatch(
    schema,
    makeData({ type: new Struct<TypeMap>(schema.fields), length: rows, nullCount: 0, children }),
  );
}

function idData(ids: KeyColumn, positions: Uint32Array) {
  return keysToVector(takeKeys(ids, positions)).data[0];
}
