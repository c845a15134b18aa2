import { type Schema, Table, tableToIPC } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { type Phase, startPhase } from '../../engine/phase.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { type LogicalPlan, operatorsOf, rootSource, runInto, sourceRequest } from '../../engine/stream/logical-plan.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { SourceSplit } from '../../engine/stream/split.ts';
import { type PortableOperator, portableOf } from '../portable.ts';
import type { ReadValues } from '../tasks/reading-tasks.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';
import { BadRowTotal, reportBadRows } from './bad-rows.ts';
import { indexChunks, type IndexedRatings, IndexIds, type IndexOptions, mostRows } from './index-ids.ts';
import { ChunkKeeper } from './sorting/chunk-keeper.ts';
import type { NumberedChunk } from './number-ids.ts';
import { chunksOf, requireFewer, typesOf } from './rating-chunk.ts';
import type { SelectRatings } from './select-ratings.ts';
import { groupSplits, RangeOrder } from './split-order.ts';

const STAGE = 'read-ratings';

/** Stored bytes of a split. Sources that have no more come in one stream: starting to read in other threads takes longer than reading them. */
const SPLIT_BYTES = 4 << 20;

export interface ReadOptions extends IndexOptions {
  /** Default SPLIT_BYTES. */
  readonly splitBytes?: number;
}

/**
 * Reads the ratings of a plan that ends in SelectRatings, and numbers their users and items as IndexIds does. The device's threads read splits of
 * the source where that can be: the source has splits, and all operators can go to another thread.
 */
export async function readRatings(plan: LogicalPlan, options: ReadOptions, ctx: ExecutionContext): Promise<IndexedRatings> {
  const work = await splitWork(plan, options.splitBytes ?? SPLIT_BYTES, ctx);
  return work === undefined ? runInto(plan, new IndexIds(options), ctx) : new SplitReading(work, options, ctx).index();
}

type SplitGroup = readonly SourceSplit[];

interface SplitWork {
  /** The columns of the splits, and those of the selected ratings. */
  readonly schema: Schema;
  readonly selected: Schema;
  readonly groups: readonly SplitGroup[];
  readonly operators: readonly PortableOperator[];
  readonly selection: SelectRatings;
  readonly takesFaults: boolean;
}

/** Undefined where the rows come in one stream. */
async function splitWork(plan: LogicalPlan, splitBytes: number, ctx: ExecutionContext): Promise<SplitWork | undefined> {
  const [source, all] = [rootSource(plan), operatorsOf(plan)];
  const operators = portableOf(all);
  if (operators === undefined || source.splits === undefined) return undefined;
  const { columns, needs } = sourceRequest(plan);
  const found = await source.splits(ctx, columns, needs, splitBytes);
  if (found === undefined || found.splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes) return undefined;
  const selected = all.reduce((schema, operator) => operator.outputSchema(schema), found.schema);
  return { schema: found.schema, selected, groups: groupSplits(found.splits, splitBytes), operators, selection: all.at(-1) as SelectRatings, takesFaults: needs?.takesFaults ?? false };
}

/** The outcome of a group of splits: what was read, or the error, or neither where a group before it has failed. */
interface Attempt {
  readonly group: SplitGroup;
  readonly read?: ReadChunks;
  readonly error?: unknown;
}

type ReadChunks = ReadValues & { readonly numbered: readonly NumberedChunk[] };

/** Reads groups of splits by tasks, a bounded number at once, and takes their results in the order of rows. */
class SplitReading {
  readonly #work: SplitWork;
  readonly #options: ReadOptions;
  readonly #ctx: ExecutionContext;
  readonly #stop = new AbortController();
  /** The context of tasks, which end with `#stop` as well. */
  readonly #tasks: ExecutionContext;
  readonly #name = dataSetName('ratings');
  readonly #order = new RangeOrder();
  readonly #bad = new BadRowTotal();
  readonly #numbered: NumberedChunk[] = [];
  readonly #keeper: ChunkKeeper;
  #started = 0;
  #rows = 0;
  /** True once a group has failed: those behind it are not read any more. */
  #failed = false;

  constructor(work: SplitWork, options: ReadOptions, ctx: ExecutionContext) {
    [this.#work, this.#options, this.#ctx] = [work, options, ctx];
    this.#keeper = new ChunkKeeper(options, ctx);
    this.#tasks = { ...ctx, signal: AbortSignal.any([ctx.signal, this.#stop.signal]) };
  }

  async index(): Promise<IndexedRatings> {
    const { events, metrics } = this.#ctx;
    const started = performance.now();
    const phase = startPhase(events, 'read', 'ratings', this.#options.totalRows);
    await this.#readAll(phase);
    reportBadRows(this.#bad.found, this.#work.selection.badRows, this.#ctx);
    metrics.add('read', { rows: this.#rows, milliseconds: performance.now() - started });
    using _ = metrics.begin('number');
    const indexed = await indexChunks(this.#numbered, typesOf(this.#work.selected), this.#keeper.spilled, this.#ctx);
    phase.end(this.#rows);
    return indexed;
  }

  async #readAll(phase: Phase): Promise<void> {
    using _ = this.#ctx.metrics.begin('read');
    const { groups, schema } = this.#work;
    const { place, parallelism } = hostDevice(this.#ctx.executor).info;
    await giveTo(this.#ctx, place, [[this.#schemaRef, schemaPartition(schema)]]);
    for await (const attempt of mapOrdered(eachOf(groups), 2 * parallelism, (group) => this.#attempt(group))) {
      try {
        await this.#take(attempt);
      } catch (error) {
        this.#stop.abort();
        throw error;
      }
      phase.progress(this.#rows);
    }
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

  async #add(group: SplitGroup, read: ReadChunks): Promise<void> {
    this.#bad.add(this.#order.pass(group, read));
    for (const chunk of read.numbered) {
      this.#numbered.push(chunk);
      this.#rows += chunk.rows;
    }
    requireFewer(this.#rows, mostRows(this.#options));
    for (const chunk of read.numbered) await this.#keeper.keep(chunk);
  }

  async #read(splits: SplitGroup): Promise<ReadChunks> {
    const { place } = hostDevice(this.#ctx.executor).info;
    const { operators, takesFaults } = this.#work;
    const name = `${this.#name}/${this.#started++}`;
    const ref = (part: string, partition: number): PartitionRef => ({ name: `${name}/${part}`, partition, version: 0 });
    const parts = ['codes', 'values', 'users', 'items'] as const;
    const outputs = Object.fromEntries(Array.from({ length: chunksOf(splits) }, (_, chunk) => parts.map((part) => [`${part}.${chunk}`, ref(part, chunk)])).flat());
    const task: TaskOf<'read-ratings'> = { kernel: 'read-ratings', inputs: { schema: this.#schemaRef }, outputs, params: { splits, operators, takesFaults, maximumRows: mostRows(this.#options) } };
    const steps = new StepList(contracts);
    steps.task(STAGE, place, task);
    const [values] = (await runSteps(steps.steps, this.#tasks)).of(STAGE) as ReadValues[];
    const numbered = values.chunks.map(({ rows, users, items }, chunk): NumberedChunk => {
      const [codes, ratings, userKeys, itemKeys] = parts.map((part) => ref(part, chunk));
      return { rows, codes, values: ratings, users: { keys: userKeys, summary: users }, items: { keys: itemKeys, summary: items } };
    });
    return { ...values, numbered };
  }

  async #drop({ numbered }: ReadChunks): Promise<void> {
    const steps = new StepList(contracts);
    steps.free(STAGE, hostDevice(this.#ctx.executor).info.place, numbered.flatMap(({ codes, values, users, items }) => [codes, values, users.keys, items.keys]));
    await runSteps(steps.steps, this.#ctx);
  }

  get #schemaRef(): PartitionRef {
    return { name: `${this.#name}/schema`, partition: 0, version: 0 };
  }
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
