import type { RecordBatch, Schema } from 'apache-arrow';
import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  pieceOf,
} from '../../engine/partition.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { type Place, SPILL } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { freeAt, giveTo, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { isIpc, unpackedRows } from '../../engine/stream/packed-rows.ts';
import { openIpc } from '../../engine/stream/read-ipc.ts';
import type { LogicalPlan } from '../../engine/stream/logical-plan.ts';
import type { ReadSplit } from '../../engine/stream/split.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { columnsAs } from '../dataflow/row-operator.ts';
import type { ExchangeRoom, RowStage } from '../exchange/exchange-room.ts';
import { contracts } from '../tasks/tasks.ts';
import type { ChainOperator } from './operator-chain.ts';
import { schemaPartition, type SplitGroup } from './read-splits.ts';

/** Work for tasks: the input rows, and the operators that the tasks apply to them. */
export interface RowsWork {
  /** Columns of the input rows. */
  readonly source: Schema;
  /** Columns after the operators. */
  readonly schema: Schema;
  readonly operators: readonly ChainOperator[];
  /** The whole build side of each join among the operators; all tasks read it. */
  readonly others?: readonly OtherRows[];
  readonly device: Pick<DeviceInfo, 'place' | 'parallelism'>;
  /** Bytes of the input rows, for units. */
  readonly bytes?: number;
  readonly taken: RowsInput;
}

/**
 * The tasks' input: splits of a source, of which each task reads a group; or rows of an exchange, in units
 * that are in memory or files of this process.
 */
export type RowsInput =
  | {
      readonly kind: 'splits';
      readonly groups: readonly SplitGroup[];
      readonly readHere: ReadSplit;
      /** See SourceSplits. */
      readonly mostValues?: Readonly<Record<string, number>>;
      /** See SourceSplits. */
      readonly whenRead?: (() => void) | undefined;
    }
  | { readonly kind: 'units'; readonly units: AsyncIterable<RowUnit> }
  | { readonly kind: 'exchange'; readonly exchange: RowExchange };

/** A plan whose rows are exchanged: tasks read them, or they are a stream that the calling thread reads. */
export interface ExchangedPlan {
  /** Optimized, with its sorts as exchanges. */
  readonly plan: LogicalPlan;
  readonly work: RowsWork | { readonly stream: (ctx: ExecutionContext) => Promise<BatchStream> };
}

/** An exchange that has not started. */
export interface RowExchange {
  readonly inputs: readonly ExchangedPlan[];
  /** One line for plans. */
  describe(): string;
  /** Stages of its run, as far as they are known before rows are read. */
  stages(): readonly RowStage[];
  /** Runs the exchange. Returns the work over its parts, without the operators after it. */
  begin(ctx: ExecutionContext): Promise<RowsWork>;
}

/** Work whose input is an exchange that has not started; `afterExchange` runs it. */
export function exchangeWork(schema: Schema, device: RowsWork['device'], exchange: RowExchange): RowsWork {
  return { source: schema, schema, operators: [], device, taken: { kind: 'exchange', exchange } };
}

/** Runs the exchange of a work, if it has one. Returns work whose input is the exchanged rows. */
export async function afterExchange(work: RowsWork, ctx: ExecutionContext): Promise<RowsWork> {
  if (work.taken.kind !== 'exchange') return work;
  const first = await afterExchange(await work.taken.exchange.begin(ctx), ctx);
  return {
    ...first,
    schema: work.schema,
    operators: [...first.operators, ...work.operators],
    others: [...(first.others ?? []), ...(work.others ?? [])],
  };
}

const STAGE = 'exchange';

/**
 * Rows that one task has divided for an exchange: Arrow streams, one for each part of the exchange that gets
 * rows of this task.
 */
export interface KeptPartition {
  readonly ref: PartitionRef;
  readonly bytes: number;
  /** True if it is in a file. */
  spilled: boolean;
  /** Number of its parts that are still needed. */
  left: number;
}

/**
 * The rows that one part of an exchange gets from one task: stream number `piece` of the task's partition.
 */
export interface RowPart {
  readonly of: KeptPartition;
  readonly piece: number;
  readonly bytes: number;
}

/** The device and the memory limit for the partitions of an exchange. */
export interface PartsPlace {
  readonly place: Place;
  readonly room: ExchangeRoom;
}

interface UnitOptions extends PartsPlace {
  readonly small?: boolean;
  readonly others?: readonly OtherRows[];
  /** Number of calls of `free` after which the partition is freed. */
  readonly uses?: number;
}

/**
 * Rows of a join's build side, which a task reads before its own rows: a part of the build side for one task,
 * or the whole for all tasks.
 */
export interface OtherRows {
  readonly schema: Schema;
  /** A partition without rows that only defines the columns. */
  readonly columns: PartitionRef;
  /** A unique name, if several tasks read these rows. */
  readonly name?: string;
  readonly unit: RowUnit;
}

/** The input rows of one task after an exchange: one part or several small ones, read one after the other. */
export class RowUnit {
  /** The build side of the first join among the operators, if it is specific to these rows. */
  readonly others: readonly OtherRows[];
  /** True if the rows are too few for a task. */
  readonly small: boolean;
  readonly parts: readonly RowPart[];
  readonly #place: Place;
  readonly #room: ExchangeRoom;
  #uses: number;

  constructor(parts: readonly RowPart[], { place, room, small = false, others = [], uses = 1 }: UnitOptions) {
    [this.parts, this.#place, this.#room, this.#uses] = [parts, place, room, uses];
    [this.small, this.others] = [small, others];
  }

  get bytes(): number {
    return this.parts.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Yields the rows in the calling thread, as batches of the given schema. */
  async *batches(schema: Schema, ctx: ExecutionContext): AsyncGenerator<RecordBatch> {
    for (const { of, piece } of this.parts) {
      const { ref, spilled } = of;
      const steps = new StepList(contracts);
      const as = { ...ref, version: ref.version + 1 };
      if (spilled) steps.move(STAGE, ref, SPILL, this.#place, { as });
      steps.handOut(STAGE, spilled ? as : ref, this.#place);
      const [partition] = (await runSteps(steps.steps, ctx)).handed;
      const stored = pieceOf(partition, piece) as Uint8Array;
      // The memory of a file's rows is reused after they are freed, and a join or a sort may still hold batches.
      const bytes = spilled ? stored.slice() : stored;
      if (spilled) await freeAt(ctx, STAGE, this.#place, [as]);
      if (bytes.length > 0 && !isIpc(bytes)) yield* unpackedRows(bytes, schema);
      else if (bytes.length > 0) for (const batch of openIpc(bytes)) yield columnsAs(batch, schema);
    }
  }

  /** The rows will be read once more than was known. */
  again(): void {
    this.#uses++;
  }

  async free(ctx: ExecutionContext): Promise<void> {
    if (--this.#uses > 0) return;
    const done = this.parts.flatMap(({ of }) => (--of.left === 0 ? [of] : []));
    await freeAt(
      ctx,
      STAGE,
      this.#place,
      done.map(({ ref }) => ref),
    );
    for (const { bytes, spilled } of done) if (!spilled) this.#room.give(bytes);
    for (const { unit } of this.others) await unit.free(ctx);
  }
}

/**
 * Stores the columns of a join's build side as a partition at a place, where every task finds them. Returns a
 * function that makes the build side from rows.
 */
export async function otherRows(
  schema: Schema,
  place: Place,
  ctx: ExecutionContext,
): Promise<(unit: RowUnit, isShared: boolean) => OtherRows> {
  const columns = partitionRef(dataSetName('columns'));
  await giveTo(ctx, place, [[columns, schemaPartition(schema)]]);
  return (unit, isShared) => ({ schema, columns, unit, ...(isShared && { name: dataSetName('other') }) });
}

/**
 * Moves partitions to a file if the exchange's memory limit has no room for them. Returns them with a mark
 * whether they are in a file.
 */
export async function keepPartitions(
  partitions: readonly Omit<KeptPartition, 'spilled'>[],
  { place, room }: PartsPlace,
  ctx: ExecutionContext,
): Promise<KeptPartition[]> {
  const bytes = partitions.reduce((sum, partition) => sum + partition.bytes, 0);
  const kept = partitions.map((partition) => ({ ...partition, spilled: false }));
  if (bytes > 0 && !room.take(bytes)) await spillPartitions(kept, place, ctx);
  return kept;
}

async function spillPartitions(
  partitions: readonly KeptPartition[],
  place: Place,
  ctx: ExecutionContext,
): Promise<void> {
  const steps = new StepList(contracts);
  const refs = partitions.map(({ ref }) => ref);
  steps.spill(STAGE, place, refs);
  await runSteps(steps.steps, ctx);
  for (const partition of partitions) partition.spilled = true;
}

/** Moves partitions in memory to files until the others have room, after memory was reserved for tasks. */
export async function spillExcess(
  partitions: Iterable<KeptPartition>,
  { place, room }: PartsPlace,
  ctx: ExecutionContext,
): Promise<void> {
  for (const partition of partitions) {
    if (room.excess === 0) return;
    if (partition.spilled || partition.left === 0) continue;
    await spillPartitions([partition], place, ctx);
    room.give(partition.bytes);
  }
}

/** Cuts a stream into units of about `bytes` bytes. A stream of few rows becomes one small unit. */
export async function* unitsOfStream(
  schema: Schema,
  batches: AsyncIterable<RecordBatch>,
  at: PartsPlace & { readonly bytes: number },
  ctx: ExecutionContext,
): AsyncGenerator<RowUnit> {
  const name = dataSetName('rows');
  let [partition, rows] = [0, new RowStream(schema, false)];
  const unit = async (small: boolean) => {
    const held: Partition = {
      layout: 'arrow-stream',
      rows: rows.rows,
      columns: { bytes: rows.takeShared() },
    };
    const ref = partitionRef(name, partition++);
    await giveTo(ctx, at.place, [[ref, held]]);
    const bytes = held.columns.bytes.byteLength;
    const [of] = await keepPartitions([{ ref, bytes, left: 1 }], at, ctx);
    return new RowUnit([{ of, piece: 0, bytes }], { ...at, small });
  };
  for await (const batch of batches) {
    if (batch.numRows > 0) rows.add(batch);
    if (rows.length < at.bytes) continue;
    yield await unit(false);
    rows = new RowStream(schema, false);
  }
  if (rows.rows > 0) yield await unit(partition === 0);
}

/** The rows in pieces of at most `most` bytes; a larger part of one task is a piece of its own. */
export function cutParts(parts: readonly RowPart[], most: number): RowPart[][] {
  const pieces: RowPart[][] = [[]];
  let bytes = 0;
  for (const part of parts) {
    if (bytes > 0 && bytes + part.bytes > most) {
      pieces.push([]);
      bytes = 0;
    }
    pieces[pieces.length - 1].push(part);
    bytes += part.bytes;
  }
  return pieces;
}
