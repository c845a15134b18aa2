import { RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { type LogicalPlan, operatorsOf } from '../../engine/stream/logical-plan.ts';
import type { Source, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ReadSplit, SplitEnd } from '../../engine/stream/split.ts';
import { type BatchStream, batchStream, setOrigin } from '../../engine/stream/stream.ts';
import type { ReadRowsValues } from '../tasks/reading-tasks.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';
import { type GroupEnd, groupSplits, type SplitGroup } from './split-order.ts';
import { readSplits, schemaPartition } from './split-tasks.ts';

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

/** Rows that a task has read; those that it cannot hold are read by the calling thread instead. */
interface ReadRows extends GroupEnd {
  rows: number;
  end: SplitEnd | null;
  /** The batches as an Arrow stream. */
  readonly held?: { readonly bytes: Uint8Array; readonly origins: ReadRowsValues['origins'] };
}

class SplitStream {
  readonly #schema: Schema;
  readonly #groups: readonly SplitGroup[];
  readonly #readHere: ReadSplit;
  readonly #device: Pick<DeviceInfo, 'place' | 'parallelism'>;
  readonly #holdings: Holdings;
  readonly #name = dataSetName('rows');
  #started = 0;

  constructor(
    schema: Schema,
    groups: readonly SplitGroup[],
    readHere: ReadSplit,
    device: Pick<DeviceInfo, 'place' | 'parallelism'>,
    ctx: ExecutionContext,
  ) {
    [this.#schema, this.#groups, this.#readHere, this.#device] = [schema, groups, readHere, device];
    this.#holdings = new Holdings(ctx);
  }

  async *batches(): AsyncGenerator<RecordBatch> {
    const { ctx } = this.#holdings;
    try {
      await giveTo(ctx, this.#device.place, [[this.#schemaRef, schemaPartition(this.#schema)]]);
      const groups = readSplits(
        {
          groups: this.#groups,
          atOnce: this.#device.parallelism + 2,
          read: (group, tasks) => this.#read(group, tasks),
        },
        ctx,
      );
      for await (const { splits, read } of groups)
        yield* read.held ? this.#batchesOf(read.held) : this.#readInstead(splits, read);
    } finally {
      await this.#holdings.close();
    }
  }

  *#batchesOf({ bytes, origins }: NonNullable<ReadRows['held']>): Generator<RecordBatch> {
    let at = 0;
    for (const { data } of RecordBatchReader.from(bytes))
      yield setOrigin(new RecordBatch(this.#schema, data), origins[at++]);
  }

  /** The rows of splits, batch by batch; their number and end are known once all of them were pulled. */
  async *#readInstead(splits: SplitGroup, read: ReadRows): AsyncGenerator<RecordBatch> {
    for (const split of splits) {
      const batches = this.#readHere(split, this.#schema, {
        signal: this.#holdings.ctx.signal,
        takesFaults: false,
      });
      try {
        let next = await batches.next();
        for (; !next.done; next = await batches.next()) {
          read.rows += next.value.numRows;
          yield next.value;
        }
        read.end = next.value ?? null;
      } finally {
        await batches.return(undefined);
      }
    }
  }

  async #read(splits: SplitGroup, ctx: ExecutionContext): Promise<ReadRows> {
    if (splits.some(({ bytes }) => bytes > MOST_STORED)) return { rows: 0, end: null };
    const { place } = this.#device;
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
    const results = await runSteps(steps.steps, ctx);
    const [values] = results.of(STAGE) as ReadRowsValues[];
    if (!values.complete) return { rows: 0, end: null };
    const held = { bytes: results.handed[0].columns.bytes as Uint8Array, origins: values.origins };
    return { rows: values.rows, end: values.end, held };
  }

  get #schemaRef(): PartitionRef {
    return { name: `${this.#name}/schema`, partition: 0, version: 0 };
  }
}
