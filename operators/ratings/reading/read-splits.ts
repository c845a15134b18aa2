import { type Schema, Table, tableToIPC } from 'apache-arrow';
import { CapacityError, DeviceLostError, FactorFlowError, throwIfAborted } from '../../../engine/errors.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import {
  type LogicalPlan,
  operatorsOf,
  rootSource,
  sourceRequest,
} from '../../../engine/stream/logical-plan.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import type { SourceSplit } from '../../../engine/stream/split.ts';
import { type PortableOperator, portableOf } from '../../portable.ts';
import type { ReadValues } from '../../tasks/reading-tasks.ts';
import { contracts, type TaskOf } from '../../tasks/tasks.ts';
import { BadRowTotal, reportBadRows } from '../rows/bad-rows.ts';
import type { NumberedChunk } from '../ids/number-ids.ts';
import { chunksOf, type RatingTypes, requireFewer, typesOf } from './rating-chunk.ts';
import type { SelectRatings } from '../rows/select-ratings.ts';
import { groupSplits, RangeOrder } from './split-order.ts';
import { type PairRoom, roomForPairs } from '../sorting/pair-room.ts';

const STAGE = 'read-ratings';

/**
 * Stored bytes of a split. Sources that have no more come in one stream: starting to read in other threads
 * takes longer than reading them.
 */
const SPLIT_BYTES = 4 << 20;

export interface SplitOptions {
  /** Default SPLIT_BYTES. */
  readonly splitBytes?: number;
  /** More ratings are a CapacityError. */
  readonly maximumRows: number;
  /** Most rows that get one room (see PairRoom), where their number is known; default 0. */
  readonly roomRows?: number;
}

/** The ratings of all splits, in the order of rows. */
export interface SplitRatings {
  readonly chunks: readonly NumberedChunk[];
  readonly room?: PairRoom;
  readonly types: RatingTypes;
}

/**
 * Gets the chunks of some splits, which it may move elsewhere, and the number of ratings so far; none and 0
 * when reading begins.
 */
export type OnChunks = (chunks: readonly NumberedChunk[], rows: number) => Promise<void>;

/**
 * Reads the ratings of a plan that ends in SelectRatings, by tasks of the device for the splits of the
 * source; undefined, with nothing read, where the rows come in one stream: the source has no splits or hardly
 * one, or an operator cannot go to another thread.
 *
 */
export async function readSplits(
  plan: LogicalPlan,
  options: SplitOptions,
  ctx: ExecutionContext,
  onChunks: OnChunks = async () => {},
): Promise<SplitRatings | undefined> {
  const work = await splitWork(plan, options.splitBytes ?? SPLIT_BYTES, ctx);
  return work && new SplitReading(work, options, onChunks, ctx).read();
}

type SplitGroup = readonly SourceSplit[];

interface SplitWork {
  /** The columns of the splits. */
  readonly schema: Schema;
  readonly types: RatingTypes;
  readonly groups: readonly SplitGroup[];
  readonly operators: readonly PortableOperator[];
  readonly selection: SelectRatings;
  readonly takesFaults: boolean;
}

/** Undefined where the rows come in one stream. */
async function splitWork(
  plan: LogicalPlan,
  splitBytes: number,
  ctx: ExecutionContext,
): Promise<SplitWork | undefined> {
  const [source, all] = [rootSource(plan), operatorsOf(plan)];
  const operators = portableOf(all);
  if (operators === undefined || source.splits === undefined) return undefined;
  const { columns, needs } = sourceRequest(plan);
  const found = await source.splits(ctx, columns, needs, splitBytes);
  if (found === undefined || found.splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes)
    return undefined;
  const types = typesOf(all.reduce((schema, operator) => operator.outputSchema(schema), found.schema));
  return {
    schema: found.schema,
    types,
    groups: groupSplits(found.splits, splitBytes),
    operators,
    selection: all.at(-1) as SelectRatings,
    takesFaults: needs?.takesFaults ?? false,
  };
}

/**
 * The outcome of a group of splits: what was read, or the error, or neither where a group before it has
 * failed.
 */
interface Attempt {
  readonly group: SplitGroup;
  readonly read?: ReadChunks;
  readonly error?: unknown;
}

type ReadChunks = ReadValues & { readonly numbered: readonly NumberedChunk[] };

/**
 * Reads groups of splits by tasks, a bounded number at once, and takes their results in the order of rows.
 */
class SplitReading {
  readonly #work: SplitWork;
  readonly #options: SplitOptions;
  readonly #onChunks: OnChunks;
  readonly #ctx: ExecutionContext;
  readonly #stop = new AbortController();
  /** The context of tasks, which end with `#stop` as well. */
  readonly #tasks: ExecutionContext;
  readonly #name = dataSetName('ratings');
  readonly #order = new RangeOrder();
  readonly #bad = new BadRowTotal();
  readonly #chunks: NumberedChunk[] = [];
  readonly #places = new Map<SplitGroup, { readonly from: number; readonly to: number }>();
  #room: PairRoom | undefined;
  #started = 0;
  #rows = 0;
  /** True once a group has failed: those behind it are not read any more. */
  #failed = false;

  constructor(work: SplitWork, options: SplitOptions, onChunks: OnChunks, ctx: ExecutionContext) {
    [this.#work, this.#options, this.#onChunks, this.#ctx] = [work, options, onChunks, ctx];
    this.#tasks = { ...ctx, signal: AbortSignal.any([ctx.signal, this.#stop.signal]) };
  }

  async read(): Promise<SplitRatings> {
    using _ = this.#ctx.metrics.begin('read');
    const { groups, schema, types, selection } = this.#work;
    const { place, parallelism } = hostDevice(this.#ctx.executor).info;
    await giveTo(this.#ctx, place, [[this.#schemaRef, schemaPartition(schema)]]);
    const room = await this.#makeRoom();
    await this.#onChunks([], 0);
    for await (const attempt of mapOrdered(eachOf(groups), this.#atOnce(2 * parallelism), (group) =>
      this.#attempt(group),
    )) {
      try {
        await this.#take(attempt);
      } catch (error) {
        this.#stop.abort();
        throw error;
      }
    }
    reportBadRows(this.#bad.found, selection.badRows, this.#ctx);
    return { chunks: this.#chunks, types, room };
  }

  /**
   * Groups under way, `most` at most: the chunks of a group are there until all of it is read. Fewer where
   * memory is to hold fewer rows.
   */
  #atOnce(most: number): number {
    const rows = this.#work.groups.reduce(
      (largest, group) =>
        Math.max(
          largest,
          group.reduce((sum, split) => sum + (split.rows ?? 0), 0),
        ),
      1,
    );
    return Math.max(
      1,
      Math.min(most, Math.floor((this.#options.roomRows ?? Number.POSITIVE_INFINITY) / rows)),
    );
  }

  /** One room for all rows, where all of them are ratings whose number is known. */
  async #makeRoom(): Promise<PairRoom | undefined> {
    const { groups, operators, types } = this.#work;
    let rows = 0;
    for (const group of groups) {
      const own = group.reduce((sum, split) => sum + (split.rows ?? Number.NaN), 0);
      this.#places.set(group, { from: rows, to: rows + own });
      rows += own;
    }
    const { roomRows = 0, maximumRows } = this.#options;
    // Another operator may leave rows out, so that the room would be too large. A comparison with NaN is
    // false.
    if (operators.length > 1 || types.timestamps || !(rows <= Math.min(roomRows, maximumRows)))
      return undefined;
    this.#room = await roomForPairs(
      rows,
      { name: `${this.#name}/room`, partition: 0, version: 0 },
      this.#ctx,
    );
    return this.#room;
  }

  async #attempt(group: SplitGroup): Promise<Attempt> {
    if (this.#failed) return { group };
    try {
      return { group, read: await this.#read(group) };
    } catch (error) {
      if (!isGuess(group)) this.#failed = true;
      return { group, error };
    }
  }

  /** Takes what was read; a range that began at a wrong place is read again. */
  async #take({ group, read, error }: Attempt): Promise<void> {
    throwIfAborted(this.#ctx.signal, 'read');
    if (!isGuess(group)) {
      if (read === undefined) throw error;
      return this.#add(group, read);
    }
    if (read !== undefined && this.#order.follows(read)) return this.#add(group, read);
    if (read !== undefined) await this.#drop(read);
    const range = this.#order.truth(group);
    if (range === undefined) return;
    const again = [{ ...group[0], range }];
    await this.#add(again, await this.#read(again));
  }

  async #add(group: SplitGroup, { numbered, ...read }: ReadChunks): Promise<void> {
    this.#bad.add(this.#order.pass(group, read));
    this.#chunks.push(...numbered);
    this.#rows += numbered.reduce((sum, chunk) => sum + chunk.rows, 0);
    requireFewer(this.#rows, this.#options.maximumRows);
    await this.#onChunks(numbered, this.#rows);
  }

  async #read(splits: SplitGroup): Promise<ReadChunks> {
    const { place: at } = hostDevice(this.#ctx.executor).info;
    const { operators, takesFaults } = this.#work;
    const name = `${this.#name}/${this.#started++}`;
    const ref = (part: string, partition: number): PartitionRef => ({
      name: `${name}/${part}`,
      partition,
      version: 0,
    });
    const parts = ['codes', 'values', 'users', 'items'] as const;
    const outputs = Object.fromEntries(
      Array.from({ length: chunksOf(splits) }, (_, chunk) =>
        parts.map((part) => [`${part}.${chunk}`, ref(part, chunk)]),
      ).flat(),
    );
    const place = this.#room && this.#places.get(splits);
    const task: TaskOf<'read-ratings'> = {
      kernel: 'read-ratings',
      inputs: { schema: this.#schemaRef },
      outputs: { ...outputs, ...(this.#room && { room: this.#room.ref }) },
      params: {
        splits,
        operators,
        takesFaults,
        maximumRows: this.#options.maximumRows,
        ...(place && { room: place }),
      },
    };
    const steps = new StepList(contracts);
    steps.task(STAGE, at, task);
    const results = await runSteps(steps.steps, this.#tasks).catch((error: unknown) => {
      throw threadProblem(error, splits[0].file);
    });
    const [values] = results.of(STAGE) as ReadValues[];
    const numbered = values.chunks.map(({ rows, users, items }, chunk): NumberedChunk => {
      const [codes, ratings, userKeys, itemKeys] = parts.map((part) => ref(part, chunk));
      return {
        rows,
        codes,
        values: ratings,
        users: { keys: userKeys, summary: users },
        items: { keys: itemKeys, summary: items },
      };
    });
    return { ...values, numbered };
  }

  async #drop({ numbered }: ReadChunks): Promise<void> {
    const steps = new StepList(contracts);
    steps.free(
      STAGE,
      hostDevice(this.#ctx.executor).info.place,
      numbered.flatMap(({ codes, values, users, items }) => [codes, values, users.keys, items.keys]),
    );
    await runSteps(steps.steps, this.#ctx);
  }

  get #schemaRef(): PartitionRef {
    return { name: `${this.#name}/schema`, partition: 0, version: 0 };
  }
}

/** The error of a thread that failed in the middle of its work, with the file. */
function threadProblem(error: unknown, file: string): unknown {
  if (error instanceof DeviceLostError)
    return new DeviceLostError(error.summary, { ...error.details, phase: 'read', file });
  if (error instanceof FactorFlowError || !(error instanceof Error)) return error;
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new CapacityError('a thread ran out of memory', {
      phase: 'read',
      file,
      advice: 'Use fewer workers, or smaller row groups and files',
      cause: error,
    });
  }
  return new Error(`read: a thread failed: ${error.message} (${file})`, { cause: error });
}

/** True for a range whose first record is a guess. */
function isGuess([first]: SplitGroup): boolean {
  return first.range?.known === false;
}

/** The columns alone, as an Arrow stream. */
export function schemaPartition(schema: Schema): Partition {
  const written = tableToIPC(new Table(schema));
  const bytes = sharedArray(Uint8Array, written.length);
  bytes.set(written);
  return { layout: 'schema', rows: schema.fields.length, columns: { bytes } };
}

export async function* eachOf<T>(elements: readonly T[]): AsyncGenerator<T> {
  yield* elements;
}
