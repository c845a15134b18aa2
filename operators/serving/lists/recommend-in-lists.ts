import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../../engine/json.ts';
import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import { dataSetName, partitionRef, sharedArray } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import type { Source } from '../../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../../engine/stream/stream.ts';
import { contracts, type TaskOf } from '../../tasks/tasks.ts';
import type { FactorModel } from '../factor-model.ts';
import { listSchema, type RecommendOptions, topBatch } from '../recommend.ts';
import { inFlight, NO_ITEM, ranges } from '../top-lists.ts';
import type { PlacedLists } from './list-index.ts';

const STAGE = 'top-n';

/** Users of one task. */
const USERS_OF_TASK = 256;

export interface InListsOptions extends RecommendOptions {
  /** Number of lists that are searched for each user. */
  readonly probes: number;
  /** 1 for each item that may be found, in shared memory. Default: all. */
  readonly mask?: Uint8Array | undefined;
  /** The index of the items, and a context of the threads that have it. */
  readonly place: (
    ctx: ExecutionContext,
  ) => Promise<{ readonly placed: PlacedLists; readonly ctx: ExecutionContext }>;
}

/** Users and items by id, and the vectors of the users, of the rank that the lists have. */
export interface Queries {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly userFactors: Float32Array;
  readonly rank: number;
}

/** Like `Recommend`, for a catalogue with an index: most of the best items, found in a few lists. */
export class RecommendInLists implements Source {
  readonly name = 'recommend-in-lists';
  readonly replayable = true;
  readonly #queries: Queries;
  readonly #options: InListsOptions;

  constructor(queries: Queries, options: InListsOptions) {
    [this.#queries, this.#options] = [queries, options];
  }

  describe(): JsonObject {
    const { n, probes, exclude } = this.#options;
    return { n, rank: this.#queries.rank, probes, exclude: exclude !== undefined };
  }

  async schema(): Promise<Schema> {
    return listSchema(this.#queries, this.#options.columns);
  }

  async execute(ctx: ExecutionContext): Promise<BatchStream> {
    const schema = await this.schema();
    return batchStream(schema, this.#recommend(schema, ctx));
  }

  async *#recommend(schema: Schema, ctx: ExecutionContext) {
    const { n, unit = 'users', onEnd, place } = this.#options;
    const { placed, ctx: own } = await place(ctx);
    const holdings = new Holdings(own);
    try {
      const users = keyCount(this.#queries.users);
      const phase = startPhase(ctx.events, 'recommend', unit, users);
      const search = await this.#searcher(placed, ctx, holdings.ctx);
      const device = computeDevice(own.executor).info;
      let short = 0;
      for await (const { from, to, items, scores } of mapOrdered(
        ranges(users, USERS_OF_TASK),
        inFlight(device),
        search,
      )) {
        phase.progress(to);
        for (let last = n - 1; last < items.length; last += n) if (items[last] === NO_ITEM) short++;
        const batch = topBatch(schema, this.#queries, from, n, items, scores);
        if (batch.numRows > 0) yield batch;
      }
      phase.end(users);
      onEnd?.(short, ctx);
    } finally {
      await holdings.close();
    }
  }

  /** Returns a function that searches for the users of a range. */
  async #searcher({ parts, search }: PlacedLists, ctx: ExecutionContext, held: ExecutionContext) {
    const { n, probes, mask, exclude } = this.#options;
    const { place } = computeDevice(held.executor).info;
    const name = dataSetName('top');
    const ref = (part: string, partition = 0) => partitionRef(`${name}/${part}`, partition);
    const { rank } = this.#queries;
    const userFactors = sharedNumbers(this.#queries.userFactors);
    await giveTo(held, place, [
      [
        ref('queries'),
        { layout: 'vectors', rows: userFactors.length / rank, columns: { values: userFactors } },
      ],
      ...(mask
        ? [[ref('mask'), { layout: 'item-mask', rows: mask.length, columns: { values: mask } }] as const]
        : []),
    ]);
    const model: FactorModel = { ...this.#queries, itemFactors: new Float32Array(0) };
    const block = await exclude?.({ ...ctx, executor: held.executor }, model);
    const inputs = {
      ...parts,
      queries: ref('queries'),
      ...(mask ? { mask: ref('mask') } : {}),
      ...(block ? { exclude: block.ref } : {}),
    };
    return async ({ from, to }: { readonly from: number; readonly to: number }) => {
      const top = ref('lists', from);
      const task: TaskOf<'top-n-in-lists'> = {
        kernel: 'top-n-in-lists',
        inputs,
        outputs: { top },
        params: { ...search, n, probes, from, to },
      };
      const steps = new StepList(contracts);
      steps.handOut(STAGE, top, place, steps.task(STAGE, place, task));
      steps.free(STAGE, place, [top]);
      const [lists] = (await runSteps(steps.steps, held)).handed;
      const { items, scores } = lists.columns as { items: Uint32Array; scores: Float32Array };
      return { from, to, items, scores };
    };
  }
}

/** The numbers in shared memory, which all tasks read: a copy if they are not there. */
function sharedNumbers(values: Float32Array): Float32Array {
  if (values.buffer instanceof SharedArrayBuffer) return values;
  const copy = sharedArray(Float32Array, values.length);
  copy.set(values);
  return copy;
}
