import { RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { throwIfAborted } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { giveTo } from '../engine/run/hand-over.ts';
import { Holdings } from '../engine/run/holdings.ts';
import { runSteps } from '../engine/run/run-steps.ts';
import { StepList } from '../engine/run/step-list.ts';
import { type LogicalPlan, operatorsOf } from '../engine/stream/logical-plan.ts';
import { mapOrdered } from '../engine/stream/map-ordered.ts';
import type { Source, ValueNeeds } from '../engine/stream/operator.ts';
import type { ReadSplit, SourceSplit } from '../engine/stream/split.ts';
import { type BatchStream, batchStream, setOrigin } from '../engine/stream/stream.ts';
import type { BadRows } from './ratings/rows/bad-rows.ts';
import { eachOf, schemaPartition } from './ratings/reading/read-splits.ts';
import { groupSplits, RangeOrder } from './ratings/reading/split-order.ts';
import type { ReadRowsValues } from './tasks/reading-tasks.ts';
import { contracts, type TaskOf } from './tasks/tasks.ts';

const STAGE = 'read-rows';

/** Stored bytes of a task. Sources that have no more come in one stream. */
const SPLIT_BYTES = 2 << 20;

/**
 * Fewest threads for files whose batches are the same in one stream: the calling thread keeps fewer ones
 * busy. Ranges of text have batches of their own.
 */
const FEWEST_THREADS = 4;

/**
 * Most bytes of a split, as stored, and of its rows in memory; a larger one is read by the calling thread,
 * batch by batch.
 */
const MOST_STORED = 32 << 20;
const MOST_ROW_BYTES = 64 << 20;

/**
 * The same plan with the rows of its source read by the threads of the device, where it has splits.
 * `readHere` reads a split in the calling thread.
 */
export function readInThreads(plan: LogicalPlan, readHere: ReadSplit, splitBytes = SPLIT_BYTES): LogicalPlan {
  // Errors of operators name lines of a file, which ranges of it do not know.
  const wholeFiles = operatorsOf(plan).length > 0;
  const replaced = (part: LogicalPlan): LogicalPlan =>
    part.kind === 'source'
      ? { ...part, source: new SplitSource(part.source, { readHere, wholeFiles, splitBytes }) }
      : { ...part, input: replaced(part.input) };
  return replaced(plan);
}

interface SplitReading {
  readonly readHere: ReadSplit;
  /** No ranges of files. */
  readonly wholeFiles: boolean;
  readonly splitBytes: number;
}

/** A source whose rows come from tasks, in the order and the batches of its splits. */
class SplitSource implements Source {
  readonly name: string;
  readonly phase: string | undefined;
  readonly replayable: boolean;
  readonly #source: Source;
  readonly #reading: SplitReading;

  constructor(source: Source, reading: SplitReading) {
    [this.#source, this.#reading] = [source, reading];
    [this.name, this.phase, this.replayable] = [source.name, source.phase, source.replayable];
  }

  describe(): JsonObject {
    return this.#source.describe();
  }

  schema(needs?: ValueNeeds): Promise<Schema> {
    return this.#source.schema(needs);
  }

  async execute(
    ctx: ExecutionContext,
    columns?: readonly string[],
    needs?: ValueNeeds,
  ): Promise<BatchStream> {
    const { readHere, wholeFiles, splitBytes } = this.#reading;
    const device = ctx.executor.devices.find(({ info }) => info.kind === 'cpu')?.info;
    const found =
      device && !needs?.takesFaults
        ? await this.#source.splits?.(ctx, columns, needs, splitBytes)
        : undefined;
    const splits = found?.splits ?? [];
    const ranges = splits.some(({ range }) => range !== undefined);
    const few = splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes;
    if (
      device === undefined ||
      found === undefined ||
      few ||
      (ranges ? wholeFiles : device.parallelism < FEWEST_THREADS)
    )
      return this.#source.execute(ctx, columns, needs);
    const stream = new SplitStream(found.schema, groupSplits(splits, splitBytes), readHere, device, ctx);
    return batchStream(found.schema, stream.batches());
  }
}

const noBadRows: BadRows = { count: 0, first: null };

type SplitGroup = readonly SourceSplit[];

/** The outcome of a group: its rows, nothing where it has too many of them, or the error. */
interface Attempt {
  readonly group: SplitGroup;
  readonly read?: ReadRowsValues & { readonly bytes: Uint8Array };
  readonly error?: unknown;
}

class SplitStream {
  readonly #schema: Schema;
  readonly #groups: readonly SplitGroup[];
  readonly #readHere: ReadSplit;
  readonly #place: string;
  readonly #parallelism: number;
  readonly #holdings: Holdings;
  readonly #order = new RangeOrder();
  readonly #name = dataSetName('rows');
  #started = 0;

  constructor(
    schema: Schema,
    groups: readonly SplitGroup[],
    readHere: ReadSplit,
    { place, parallelism }: { readonly place: string; readonly parallelism: number },
    ctx: ExecutionContext,
  ) {
    [this.#schema, this.#groups, this.#readHere, this.#place, this.#parallelism] = [
      schema,
      groups,
      readHere,
      place,
      parallelism,
    ];
    this.#holdings = new Holdings(ctx);
  }

  async *batches(): AsyncGenerator<RecordBatch> {
    const { ctx } = this.#holdings;
    try {
      await giveTo(ctx, this.#place, [[this.#schemaRef, schemaPartition(this.#schema)]]);
      for await (const attempt of mapOrdered(eachOf(this.#groups), this.#parallelism + 2, (group) =>
        this.#attempt(group),
      )) {
        throwIfAborted(ctx.signal, 'read');
        yield* this.#take(attempt);
      }
    } finally {
      await this.#holdings.close();
    }
  }

  async #attempt(group: SplitGroup): Promise<Attempt> {
    if (group.some(({ bytes }) => bytes > MOST_STORED)) return { group };
    try {
      return { group, read: await this.#read(group) };
    } catch (error) {
      return { group, error };
    }
  }

  /** A range that began at a wrong place is read again, and so are rows that a task cannot hold. */
  async *#take({ group, read, error }: Attempt): AsyncGenerator<RecordBatch> {
    const guess = group[0].range?.known === false;
    if (error !== undefined && !guess) throw error;
    if (read?.complete && (!guess || this.#order.follows({ ...read, bad: noBadRows })))
      return yield* this.#give(group, read);
    const range = guess ? this.#order.truth(group) : undefined;
    if (guess && range === undefined) return;
    const again = range === undefined ? group : [{ ...group[0], range }];
    let rows = 0;
    for (const split of again) {
      const batches = this.#readHere(split, this.#schema, {
        signal: this.#holdings.ctx.signal,
        takesFaults: false,
      });
      try {
        let next = await batches.next();
        for (; !next.done; next = await batches.next()) {
          rows += next.value.numRows;
          yield next.value;
        }
        this.#order.pass([split], { rows, end: next.value ?? null, bad: noBadRows });
      } finally {
        await batches.return(undefined);
      }
    }
  }

  *#give(group: SplitGroup, read: NonNullable<Attempt['read']>): Generator<RecordBatch> {
    this.#order.pass(group, { ...read, bad: noBadRows });
    let at = 0;
    for (const { data } of RecordBatchReader.from(read.bytes))
      yield setOrigin(new RecordBatch(this.#schema, data), read.origins[at++]);
  }

  async #read(splits: SplitGroup): Promise<NonNullable<Attempt['read']>> {
    const place = this.#place;
    const rows: PartitionRef = { name: `${this.#name}/rows`, partition: this.#started++, version: 0 };
    const task: TaskOf<'read-rows'> = {
      kernel: 'read-rows',
      inputs: { schema: this.#schemaRef },
      outputs: { rows },
      params: { splits, takesFaults: false, maximumBytes: MOST_ROW_BYTES },
    };
    const steps = new StepList(contracts);
    steps.handOut(STAGE, rows, place, steps.task(STAGE, place, task));
    steps.free(STAGE, place, [rows]);
    const results = await runSteps(steps.steps, this.#holdings.ctx);
    const [values] = results.of(STAGE) as ReadRowsValues[];
    return { ...values, bytes: results.handed[0].columns.bytes as Uint8Array };
  }

  get #schemaRef(): PartitionRef {
    return { name: `${this.#name}/schema`, partition: 0, version: 0 };
  }
}
