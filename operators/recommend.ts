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
import { type FactorModel, uploadFactors } from './factor-model.ts';
import { itemsByNorm } from './items-by-norm.ts';
import { placeBlock } from './place-block.ts';
import type { RatingBlock } from './rating-block.ts';
import type { TopNTask } from './tasks.ts';

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
      const { model, bounds } = itemsByNorm(this.#model);
      const exclude = await this.#options.exclude?.(scope.ctx, model);
      if (exclude) placeBlock(exclude, scope.ctx.executor, 'pattern');
      const { users: rowFactors, items: columnFactors } = uploadFactors(model, device);
      const boundsRef: PartitionRef = { name: dataSetName('bounds'), partition: 0, version: 0 };
      device.put(boundsRef, bounds);
      const inputs = { rowFactors, columnFactors, bounds: boundsRef, ...(exclude ? { exclude: exclude.ref } : {}) };
      const users = keyCount(model.users);
      const step = usersPerTask(device.kind, this.#options.n);
      const top = (from: number) => topOf({ from, to: Math.min(users, from + step) }, model.rank, this.#options.n, inputs, device, ctx);
      const phase = startPhase(ctx.events, 'recommend', this.#options.unit ?? 'users', users);
      for await (const { from, to, items, scores } of mapOrdered(starts(users, step), 2 * device.parallelism, top)) {
        phase.progress(to);
        const batch = toBatch(schema, model, from, this.#options.n, items, scores);
        if (batch.numRows > 0) yield batch;
      }
      phase.end(users);
    } finally {
      await scope.close();
    }
  }
}

async function* starts(users: number, step: number) {
  for (let from = 0; from < users; from += step) yield from;
}

async function topOf(
  range: { from: number; to: number },
  rank: number,
  n: number,
  inputs: TopNTask['inputs'],
  device: Device,
  ctx: ExecutionContext,
) {
  const output: PartitionRef = { name: dataSetName('top'), partition: 0, version: 0 };
  const task: TopNTask = {
    kernel: 'top-n',
    inputs,
    outputs: { top: output },
    params: { ...range, rank, n },
  };
  const result = await device.run(task, ctx.signal);
  ctx.metrics.add('top-n', result.metrics);
  const { items, scores } = (await device.fetch(output)).columns as { items: Uint32Array; scores: Float32Array };
  device.release(output);
  return { ...range, items, scores };
}

function toBatch(schema: Schema, model: FactorModel, firstUser: number, n: number, items: Uint32Array, scores: Float32Array): RecordBatch {
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
