import { type RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { dataSetName, type Partition, type PartitionRef } from '../../engine/partition.ts';
import { SPILL, type Place } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { columnsAs } from '../dataflow/same-rows.ts';
import type { ExchangeRoom } from '../exchange/exchange-room.ts';
import { schemaPartition } from './split-tasks.ts';
import { contracts } from '../tasks/tasks.ts';

const STAGE = 'exchange';

/** A partition of rows as an Arrow stream. */
export interface RowPart {
  readonly ref: PartitionRef;
  readonly bytes: number;
  /** True where it is in a file. */
  readonly spilled: boolean;
}

/** The place and the memory of partitions. */
export interface PartsHome {
  readonly place: Place;
  readonly room: ExchangeRoom;
}

interface UnitOptions extends PartsHome {
  readonly small?: boolean;
  readonly others?: readonly OtherRows[];
  /** The number of calls of `free` after which it is freed. */
  readonly uses?: number;
}

/** The other side of a join, for one task or for all of them. */
export interface OtherRows {
  readonly schema: Schema;
  /** The same as a partition without rows. */
  readonly columns: PartitionRef;
  readonly unit: RowUnit;
}

/** Rows that one task takes: partitions, one after the other. */
export class RowUnit {
  /** The other side of the first join among the operators, where it belongs to these rows. */
  readonly others: readonly OtherRows[];
  /** True for rows of which there are too few for a task. */
  readonly small: boolean;
  readonly #parts: readonly RowPart[];
  readonly #place: Place;
  readonly #room: ExchangeRoom;
  #uses: number;

  constructor(parts: readonly RowPart[], { place, room, small = false, others = [], uses = 1 }: UnitOptions) {
    [this.#parts, this.#place, this.#room, this.#uses] = [parts, place, room, uses];
    [this.small, this.others] = [small, others];
  }

  get parts(): readonly PartitionRef[] {
    return this.#parts.map(({ ref }) => ref);
  }

  get bytes(): number {
    return this.#parts.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The rows in the calling thread, as batches of the given schema. */
  async *batches(schema: Schema, ctx: ExecutionContext): AsyncGenerator<RecordBatch> {
    for (const { ref, spilled } of this.#parts) {
      const steps = new StepList(contracts);
      const as = { ...ref, version: ref.version + 1 };
      if (spilled) steps.move(STAGE, ref, SPILL, this.#place, { as });
      steps.handOut(STAGE, spilled ? as : ref, this.#place);
      const [{ columns }] = (await runSteps(steps.steps, ctx)).handed;
      const bytes = columns.bytes as Uint8Array;
      if (bytes.length > 0) for (const batch of RecordBatchReader.from(bytes)) yield columnsAs(batch, schema);
      if (!spilled) continue;
      const freeing = new StepList(contracts);
      freeing.free(STAGE, this.#place, [as]);
      await runSteps(freeing.steps, ctx);
    }
  }

  async free(ctx: ExecutionContext): Promise<void> {
    if (--this.#uses > 0) return;
    const steps = new StepList(contracts);
    steps.free(STAGE, this.#place, this.parts);
    await runSteps(steps.steps, ctx);
    for (const { bytes, spilled } of this.#parts) if (!spilled) this.#room.give(bytes);
    for (const { unit } of this.others) await unit.free(ctx);
  }
}

/** Rows of another side, with their columns as a partition at the place. */
export async function otherRows(
  schema: Schema,
  unit: RowUnit,
  place: Place,
  ctx: ExecutionContext,
): Promise<OtherRows> {
  const columns: PartitionRef = { name: dataSetName('columns'), partition: 0, version: 0 };
  await giveTo(ctx, place, [[columns, schemaPartition(schema)]]);
  return { schema, columns, unit };
}

/** Moves partitions to a file where the room does not hold them; gives them with their places. */
export async function keepParts(
  parts: readonly { readonly ref: PartitionRef; readonly bytes: number }[],
  { place, room }: PartsHome,
  ctx: ExecutionContext,
): Promise<RowPart[]> {
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  const spilled = bytes > 0 && !room.take(bytes);
  if (spilled) {
    const steps = new StepList(contracts);
    steps.spill(
      STAGE,
      place,
      parts.map(({ ref }) => ref),
    );
    await runSteps(steps.steps, ctx);
  }
  return parts.map((part) => ({ ...part, spilled }));
}

/** The rows of a stream as units of about so many `bytes`; a stream of few rows gives one that is small. */
export async function* unitsOfStream(
  schema: Schema,
  batches: AsyncIterable<RecordBatch>,
  at: PartsHome & { readonly bytes: number },
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
    const ref: PartitionRef = { name, partition: partition++, version: 0 };
    await giveTo(ctx, at.place, [[ref, held]]);
    const parts = await keepParts([{ ref, bytes: held.columns.bytes.byteLength }], at, ctx);
    return new RowUnit(parts, { ...at, small });
  };
  for await (const batch of batches) {
    if (batch.numRows > 0) rows.add(batch);
    if (rows.length < at.bytes) continue;
    yield await unit(false);
    rows = new RowStream(schema, false);
  }
  if (rows.rows > 0) yield await unit(partition === 0);
}
