import { RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { formatBytes } from '../../engine/format.ts';
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
import { type Operator, runsBySplit, type Source, type ValueNeeds } from '../../engine/stream/operator.ts';
import type { ReadSplit, SplitEnd } from '../../engine/stream/split.ts';
import { type BatchStream, batchStream, setOrigin } from '../../engine/stream/stream.ts';
import type { ReadRowsValues } from '../tasks/reading-tasks.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';
import { Limit } from '../dataflow/limit.ts';
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
  const { source, rest } = splitSource(plan, readHere, splitBytes);
  return rest.reduce(andThen, fromSource(source));
}

/** The way in which `inThreads` reads a plan's rows, for `explain`. */
export interface RowsReading {
  /** The operators that run with the source. */
  readonly pipeline: readonly Operator[];
  /** The operators after those, in the calling thread. */
  readonly rest: readonly Operator[];
  /** Tasks, and the stored bytes of all of them. */
  readonly splits: number;
  readonly bytes: number;
  readonly threads: number;
  /** The reason for which the calling thread reads; absent where tasks do. */
  readonly reason?: string;
}

export async function howRowsAreRead(
  plan: LogicalPlan,
  splitBytes = SPLIT_BYTES,
  ctx: ExecutionContext,
): Promise<RowsReading> {
  const { source, pipeline, rest } = splitSource(plan, noReader, splitBytes);
  const { columns, needs } = sourceRequest(rest.reduce(andThen, fromSource(source)));
  const found = await source.work(ctx, columns, needs);
  if (typeof found === 'string') return { pipeline, rest, splits: 0, bytes: 0, threads: 1, reason: found };
  const { groups, device } = found;
  const bytes = groups.flat().reduce((sum, split) => sum + split.bytes, 0);
  return { pipeline, rest, splits: groups.length, bytes, threads: device.parallelism };
}

const noReader: ReadSplit = () => {
  throw new Error('a plan that is explained reads no rows');
};

function splitSource(plan: LogicalPlan, readHere: ReadSplit, splitBytes: number) {
  const operators = operatorsOf(plan);
  const first = operators.findIndex((operator) => !runsBySplit(operator));
  const pipeline = first < 0 ? operators : operators.slice(0, first);
  const rest = operators.slice(pipeline.length);
  // Errors of operators name lines of a file, which ranges of it do not know in the calling thread.
  const wholeFiles = rest.some((operator) => !(operator instanceof Limit));
  const source = new SplitSource(rootSource(plan), pipeline, { readHere, wholeFiles, splitBytes });
  return { source, pipeline, rest };
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
    const work = await this.work(ctx, columns, needs);
    if (typeof work === 'string') return executePlan(this.#plan, ctx, columns, needs);
    return batchStream(work.schema, new SplitStream(work, ctx).batches());
  }

  /** The work of the tasks; or, with nothing read, the reason for which the calling thread reads. */
  async work(
    ctx: ExecutionContext,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
  ): Promise<RowsWork | string> {
    const { readHere, wholeFiles, splitBytes } = this.#reading;
    const device = ctx.executor.devices.find(({ info }) => info.kind === 'cpu')?.info;
    const request = sourceRequest(this.#plan, columns, needs);
    if (device === undefined) return 'the session has no threads';
    if (request.needs?.takesFaults) return 'the consumer handles values that cannot be read';
    const found = await this.#source.splits?.(ctx, request.columns, request.needs, splitBytes);
    if (found === undefined) return 'the rows come in one stream';
    const { splits } = found;
    if (splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes)
      return `the data are at most ${formatBytes(splitBytes)}, too few to share`;
    const ranges = splits.some(({ range }) => range !== undefined);
    if (ranges && wholeFiles)
      return 'errors of later operators name lines of the file, which parts of it do not know';
    if (!ranges && this.#operators.length === 0 && device.parallelism < FEWEST_THREADS)
      return `fewer than ${FEWEST_THREADS} threads would be no faster`;
    return {
      source: found.schema,
      schema: this.#operators.reduce((schema, operator) => operator.outputSchema(schema), found.schema),
      groups: groupSplits(splits, splitBytes),
      operators: this.#operators,
      readHere,
      device,
    };
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
  readonly device: Pick<DeviceInfo, 'place' | 'parallelism'>;
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
  readonly #holdings: Holdings;
  readonly #name = dataSetName('rows');
  #started = 0;

  constructor(work: RowsWork, ctx: ExecutionContext) {
    this.#work = work;
    this.#holdings = new Holdings(ctx);
  }

  async *batches(): AsyncGenerator<RecordBatch> {
    const { ctx } = this.#holdings;
    try {
      await giveTo(ctx, this.#work.device.place, [[this.#schemaRef, schemaPartition(this.#work.source)]]);
      const groups = readSplits(
        {
          groups: this.#work.groups,
          atOnce: this.#work.device.parallelism + 2,
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
    const { place } = this.#work.device;
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
