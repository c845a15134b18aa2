import { RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import {
  andThen,
  executePlan,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  schemaOf,
  sourceRequest,
} from '../../engine/stream/logical-plan.ts';
import type { Operator, Source, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ReadSplit, SplitEnd } from '../../engine/stream/split.ts';
import { type BatchStream, batchStream, setOrigin } from '../../engine/stream/stream.ts';
import type { ReadRowsValues } from '../tasks/reading-tasks.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';
import { portableOf } from './portable.ts';
import { type GroupEnd, groupSplits, type RowsBefore, type SplitGroup } from './split-order.ts';
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
 * The same plan with its source, and the operators on it that can go to another thread, run by the threads of
 * the device, where the source has splits. `readHere` reads a split in the calling thread.
 */
export function inThreads(plan: LogicalPlan, readHere: ReadSplit, splitBytes = SPLIT_BYTES): LogicalPlan {
  const operators = operatorsOf(plan);
  const portable = operators.findIndex((operator) => operator.portable === undefined);
  const own = portable < 0 ? operators : operators.slice(0, portable);
  const others = operators.slice(own.length);
  // Errors of operators name lines of a file, which ranges of it do not know in the calling thread.
  const wholeFiles = others.length > 0;
  const source = new SplitSource(rootSource(plan), own, { readHere, wholeFiles, splitBytes });
  return others.reduce(andThen, fromSource(source));
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
  readonly #operators: readonly Operator[];
  readonly #reading: SplitReading;

  constructor(source: Source, operators: readonly Operator[], reading: SplitReading) {
    [this.#source, this.#operators, this.#reading] = [source, operators, reading];
    [this.name, this.phase, this.replayable] = [source.name, source.phase, source.replayable];
  }

  describe(): JsonObject {
    return this.#source.describe();
  }

  schema(needs?: ValueNeeds): Promise<Schema> {
    return schemaOf(this.#plan, needs);
  }

  get #plan(): LogicalPlan {
    return this.#operators.reduce(andThen, fromSource(this.#source));
  }

  async execute(
    ctx: ExecutionContext,
    columns?: readonly string[],
    needs?: ValueNeeds,
  ): Promise<BatchStream> {
    const stream = await this.#inTasks(ctx, columns, needs);
    return stream ?? executePlan(this.#plan, ctx, columns, needs);
  }

  /** The stream by tasks; undefined, with nothing read, where the calling thread reads as fast. */
  async #inTasks(
    ctx: ExecutionContext,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
  ): Promise<BatchStream | undefined> {
    const { readHere, wholeFiles, splitBytes } = this.#reading;
    const device = ctx.executor.devices.find(({ info }) => info.kind === 'cpu')?.info;
    const request = sourceRequest(this.#plan, columns, needs);
    if (device === undefined || request.needs?.takesFaults) return undefined;
    const found = await this.#source.splits?.(ctx, request.columns, request.needs, splitBytes);
    if (found === undefined) return undefined;
    const { splits } = found;
    const ranges = splits.some(({ range }) => range !== undefined);
    const few = splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes;
    const keepsUp = this.#operators.length === 0 && device.parallelism < FEWEST_THREADS;
    if (few || (ranges ? wholeFiles : keepsUp)) return undefined;
    const work: RowsWork = {
      source: found.schema,
      schema: this.#operators.reduce((schema, operator) => operator.outputSchema(schema), found.schema),
      groups: groupSplits(splits, splitBytes),
      operators: this.#operators,
      readHere,
    };
    return batchStream(work.schema, new SplitStream(work, device, ctx).batches());
  }
}

interface RowsWork {
  /** The columns of the splits. */
  readonly source: Schema;
  /** The columns after the operators. */
  readonly schema: Schema;
  readonly groups: readonly SplitGroup[];
  readonly operators: readonly Operator[];
  readonly readHere: ReadSplit;
}

/** Rows that a task has read; those that it cannot hold are read by the calling thread instead. */
interface ReadRows extends GroupEnd {
  rows: number;
  end: SplitEnd | null;
  readonly held?: HeldRows;
}

/** Batches as an Arrow stream. */
interface HeldRows {
  readonly bytes: Uint8Array;
  readonly kept: Uint32Array;
  readonly origins: ReadRowsValues['origins'];
}

class SplitStream {
  readonly #work: RowsWork;
  readonly #device: Pick<DeviceInfo, 'place' | 'parallelism'>;
  readonly #holdings: Holdings;
  readonly #name = dataSetName('rows');
  #started = 0;

  constructor(work: RowsWork, device: Pick<DeviceInfo, 'place' | 'parallelism'>, ctx: ExecutionContext) {
    [this.#work, this.#device] = [work, device];
    this.#holdings = new Holdings(ctx);
  }

  async *batches(): AsyncGenerator<RecordBatch> {
    const { ctx } = this.#holdings;
    try {
      await giveTo(ctx, this.#device.place, [[this.#schemaRef, schemaPartition(this.#work.source)]]);
      const groups = readSplits(
        {
          groups: this.#work.groups,
          atOnce: this.#device.parallelism + 2,
          read: (group, tasks) => this.#read(group, tasks),
        },
        ctx,
      );
      for await (const { splits, read, before } of groups)
        yield* read.held ? this.#batchesOf(read.held, before) : this.#readInstead(splits, read);
    } finally {
      await this.#holdings.close();
    }
  }

  *#batchesOf({ bytes, kept, origins }: HeldRows, before: RowsBefore): Generator<RecordBatch> {
    let [at, taken] = [0, 0];
    for (const { data } of RecordBatchReader.from(bytes)) {
      // A stream without batches gives one without rows.
      if (at === origins.length) return;
      const { kept: rows, ...origin } = origins[at++];
      const own = rows === undefined ? {} : { kept: kept.subarray(taken, (taken += rows)) };
      const batch = new RecordBatch(this.#work.schema, data);
      yield setOrigin(batch, { ...origin, ...own, firstRow: origin.firstRow + before.rows });
    }
  }

  /** The rows of splits, batch by batch; their number and end are known once all of them were pulled. */
  async *#readInstead(splits: SplitGroup, read: ReadRows): AsyncGenerator<RecordBatch> {
    const { source, operators } = this.#work;
    const input = batchStream(source, this.#readHere(splits, read));
    yield* operators.reduce((stream, operator) => operator.execute(stream, this.#holdings.ctx), input);
  }

  async *#readHere(splits: SplitGroup, read: ReadRows): AsyncGenerator<RecordBatch> {
    for (const split of splits) {
      const batches = this.#work.readHere(split, this.#work.source, {
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
      params: {
        splits,
        operators: portableOf(this.#work.operators),
        takesFaults: false,
        maximumBytes: MOST_ROW_BYTES,
      },
    };
    const steps = new StepList(contracts);
    steps.handOut(STAGE, rows, place, steps.task(STAGE, place, task));
    steps.free(STAGE, place, [rows]);
    const results = await runSteps(steps.steps, ctx);
    const [values] = results.of(STAGE) as ReadRowsValues[];
    if (!values.complete) return { rows: 0, end: null };
    const { bytes, kept } = results.handed[0].columns as { bytes: Uint8Array; kept: Uint32Array };
    const held = { bytes, kept, origins: values.origins };
    return { rows: values.rows, end: values.end, held };
  }

  get #schemaRef(): PartitionRef {
    return { name: `${this.#name}/schema`, partition: 0, version: 0 };
  }
}
