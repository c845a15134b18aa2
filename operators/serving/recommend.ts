import { Field, Float32, Int32, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { computeDevice } from '../../engine/run/devices.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysToVector } from '../../engine/keys/arrow-keys.ts';
import { keyCount, type KeyColumn, takeKeys } from '../../engine/keys/key-column.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Source } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef } from '../../engine/partition.ts';
import { startPhase } from '../../engine/phase.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { arrowTypeOf } from '../ratings/rows/columns.ts';
import { announceSearch } from './announce-search.ts';
import { type FactorModel, placeFactors } from './factor-model.ts';
import { itemsByNorm } from './items-by-norm.ts';
import { type RatingBlock, rowsOfBlock, withoutValues } from '../ratings/rating-block.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';

const STAGE = 'top-n';

/**
 * Number of users of one task. A batch of the result has n rows for each of them. A device that divides a
 * task's users itself is busy only with many; the memory of their lists limits the number.
 */
export function usersPerTask({ wholePasses }: DeviceInfo, n: number): number {
  return wholePasses ? Math.min(32_768, Math.max(256, Math.floor(2 ** 20 / n))) : 1024;
}

/** Fills the rest of a list that has fewer than n items. */
export const NO_ITEM = 0xffff_ffff;

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
      const { model, bounds, order } = itemsByNorm(this.#model);
      const exclude = await exclusions?.(holdings.ctx, this.#model);
      const top = await topOf(model, n, { bounds, order }, exclude, info, holdings.ctx);
      const users = keyCount(model.users);
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

interface Range {
  readonly from: number;
  readonly to: number;
}

export async function* ranges(users: number, step: number): AsyncGenerator<Range> {
  for (let from = 0; from < users; from += step) yield { from, to: Math.min(users, from + step) };
}

/**
 * Number of ranges of users in progress at the same time. A device that works in order needs three: it
 * searches for one while it uploads the users of the next and downloads the lists of the previous one.
 */
export function inFlight({ inOrder, parallelism }: DeviceInfo): number {
  return inOrder ? 3 : 2 * parallelism;
}

/**
 * Returns a function that searches for the users of a range. A device with its own memory gets the users and
 * exclusions of one range at a time, so that it uploads some while it searches for others; threads of the
 * host read all in shared memory. `bounds` and `order` are given if items are sorted by norm (see
 * itemsByNorm).
 */
export async function topOf(
  model: FactorModel,
  n: number,
  { bounds, order }: { readonly bounds?: Partition; readonly order?: Partition },
  exclude: RatingBlock | undefined,
  { place, ownMemory }: DeviceInfo,
  ctx: ExecutionContext,
) {
  const { rank, userFactors } = model;
  const name = dataSetName('top');
  const ref = (part: string, partition = 0): PartitionRef => ({
    name: `${name}/${part}`,
    partition,
    version: 0,
  });
  const { users, items } = await placeFactors(model, place, ctx, ownMemory ? ['items'] : ['users', 'items']);
  await giveTo(ctx, place, [
    ...(bounds ? [[ref('bounds'), bounds] as const] : []),
    ...(order ? [[ref('order'), order] as const] : []),
  ]);
  const common = {
    columnFactors: items,
    ...(bounds ? { bounds: ref('bounds') } : {}),
    ...(order ? { order: ref('order') } : {}),
  };
  return async ({ from, to }: Range) => {
    const [top, own, left] = [ref('lists', from), ref('users', from), ref('exclude', from)];
    const given: Given[] = ownMemory
      ? [
          [
            own,
            {
              layout: 'factors',
              rows: to - from,
              columns: { values: userFactors.subarray(from * rank, to * rank) },
            },
            place,
          ],
        ]
      : [];
    if (ownMemory && exclude) given.push([left, withoutValues(rowsOfBlock(exclude, from, to, left)), place]);
    const excluded = exclude ? { exclude: ownMemory ? left : exclude.ref } : {};
    const task: TaskOf<'top-n'> = {
      kernel: 'top-n',
      inputs: { ...common, ...excluded, rowFactors: ownMemory ? own : users },
      outputs: { top },
      params: { ...(ownMemory ? { from: 0, to: to - from } : { from, to }), rank, n },
    };
    const steps = new StepList(contracts);
    steps.handOut(STAGE, top, place, steps.task(STAGE, place, task));
    steps.free(STAGE, place, [top, ...(ownMemory ? [own, ...(exclude ? [left] : [])] : [])]);
    const [lists] = (await runSteps(steps.steps, ctx, { given })).handed;
    const { items: found, scores } = lists.columns as { items: Uint32Array; scores: Float32Array };
    return { from, to, items: found, scores };
  };
}

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
