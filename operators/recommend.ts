import { Field, Float32, Int32, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { openDeviceScope } from '../engine/device-scope.ts';
import { computeDevice } from '../engine/devices.ts';
import type { Device } from '../engine/executor.ts';
import type { JsonObject } from '../engine/json.ts';
import { keysToVector } from '../engine/keys/arrow-keys.ts';
import { keyCount, type KeyColumn, takeKeys } from '../engine/keys/key-column.ts';
import { mapOrdered } from '../engine/map-ordered.ts';
import type { ExecutionContext, Source } from '../engine/operator.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import { startPhase } from '../engine/phase.ts';
import { batchStream, type BatchStream } from '../engine/stream.ts';
import { arrowTypeOf } from './columns.ts';
import { type FactorModel, uploadFactors, uploadItems } from './factor-model.ts';
import { itemsByNorm } from './items-by-norm.ts';
import { placeBlock } from './place-block.ts';
import type { RatingBlock } from './rating-block.ts';
import type { CompileTopNTask, TopNTask } from './tasks.ts';

/** Users of one task, hence rows of one batch divided by n. A GPU is busy only with many, but their lists have bounds. */
function usersPerTask(kind: 'cpu' | 'gpu', n: number): number {
  return kind === 'cpu' ? 1024 : Math.min(32_768, Math.max(256, Math.floor(2 ** 20 / n)));
}

const NO_ITEM = 0xffff_ffff;

export interface RecommendOptions {
  readonly n: number;
  /** Pairs that must not be recommended: a block over the users and items of the model it is given, made when the stream starts. */
  readonly exclude?: (ctx: ExecutionContext, model: FactorModel) => Promise<RatingBlock>;
  /** Names of the result's columns. */
  readonly columns: { readonly user: string; readonly item: string; readonly prediction: string };
  /** What progress counts; default 'users'. */
  readonly unit?: string;
}

/**
 * The n items of highest x_uᵀθ_v for each user of the model, best first, ties by longer θ, then lower item id: rows
 * {user, rank: int32 from 1, item, prediction: float32}, in the order of the model's users. A user with fewer candidates has fewer rows.
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
    const { user, item, prediction } = this.#options.columns;
    return new Schema([
      new Field(user, arrowTypeOf(this.#model.users.type), false),
      new Field('rank', new Int32(), false),
      new Field(item, arrowTypeOf(this.#model.items.type), false),
      new Field(prediction, new Float32(), false),
    ]);
  }

  async execute(ctx: ExecutionContext): Promise<BatchStream> {
    const schema = await this.schema();
    return batchStream(schema, this.#recommend(schema, ctx));
  }

  async *#recommend(schema: Schema, ctx: ExecutionContext) {
    const scope = openDeviceScope(ctx);
    try {
      const device = computeDevice(scope.ctx.executor);
      const { exclude: exclusions, n, unit = 'users' } = this.#options;
      if (device.kind === 'gpu') announce(device, exclusions !== undefined);
      const { model, bounds } = itemsByNorm(this.#model);
      const exclude = await exclusions?.(scope.ctx, model);
      if (exclude) placeBlock(exclude, scope.ctx.executor, 'pattern');
      const boundsRef: PartitionRef = { name: dataSetName('bounds'), partition: 0, version: 0 };
      device.put(boundsRef, bounds);
      const top = topOf(model, n, { bounds: boundsRef, ...(exclude ? { exclude: exclude.ref } : {}) }, device, ctx);
      const users = keyCount(model.users);
      const phase = startPhase(ctx.events, 'recommend', unit, users);
      for await (const { from, to, items, scores } of mapOrdered(ranges(users, usersPerTask(device.kind, n)), inFlight(device), top)) {
        phase.progress(to);
        const batch = topBatch(schema, model, from, n, items, scores);
        if (batch.numRows > 0) yield batch;
      }
      phase.end(users);
    } finally {
      await scope.close();
    }
  }
}

interface Range {
  readonly from: number;
  readonly to: number;
}

async function* ranges(users: number, step: number): AsyncGenerator<Range> {
  for (let from = 0; from < users; from += step) yield { from, to: Math.min(users, from + step) };
}

/** Tasks that are sent at once: of a GPU's, one computes, one's users go up and one's lists come down. */
function inFlight({ kind, parallelism }: Device): number {
  return kind === 'gpu' ? 3 : 2 * parallelism;
}

/** The GPU compiles while the host does what comes first. A device that cannot hear it compiles when it must. */
function announce(device: Device, excluding: boolean): void {
  const task: CompileTopNTask = { kernel: 'compile-top-n', inputs: {}, outputs: {}, params: { excluding } };
  device.run(task).catch(() => undefined);
}

/**
 * What searches for a range of users. A GPU is given each range's users when it is their turn, so that some go up while it
 * searches for others; threads of the host are given all at once.
 */
function topOf(model: FactorModel, n: number, common: Readonly<Record<string, PartitionRef>>, device: Device, ctx: ExecutionContext) {
  const { rank, userFactors } = model;
  const { users, items } = device.kind === 'gpu' ? { users: undefined, items: uploadItems(model, device) } : uploadFactors(model, device);
  const name = dataSetName('top');
  return async ({ from, to }: Range) => {
    const output: PartitionRef = { name, partition: from, version: 0 };
    const own: PartitionRef = { name: `${name}/users`, partition: from, version: 0 };
    if (users === undefined) device.put(own, { layout: 'factors', rows: to - from, columns: { values: userFactors.subarray(from * rank, to * rank) } });
    const rows = users === undefined ? { from: 0, to: to - from, rowStart: from } : { from, to };
    const task: TopNTask = { kernel: 'top-n', inputs: { ...common, rowFactors: users ?? own, columnFactors: items }, outputs: { top: output }, params: { ...rows, rank, n } };
    const result = await device.run(task, ctx.signal);
    ctx.metrics.add('top-n', result.metrics);
    const found = (await device.fetch(output)).columns as { items: Uint32Array; scores: Float32Array };
    device.release(output);
    if (users === undefined) device.release(own);
    return { from, to, items: found.items, scores: found.scores };
  };
}

/** A batch of lists of n items and scores, of the users from `firstUser` on. */
export function topBatch(schema: Schema, model: FactorModel, firstUser: number, n: number, items: Uint32Array, scores: Float32Array): RecordBatch {
  const users = new Uint32Array(items.length);
  const found = new Uint32Array(items.length);
  const ranks = new Int32Array(items.length);
  const predictions = new Float32Array(items.length);
  let rows = 0;
  for (let user = 0, start = 0; start < items.length; user++, start += n) {
    // A user with fewer candidates has them in front.
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
  return new RecordBatch(schema, makeData({ type: new Struct<TypeMap>(schema.fields), length: rows, nullCount: 0, children }));
}

function idData(ids: KeyColumn, positions: Uint32Array) {
  return keysToVector(takeKeys(ids, positions)).data[0];
}
