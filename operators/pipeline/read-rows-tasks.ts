import { RecordBatch, RecordBatchReader } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { dataSetName, type PartitionRef, partitionRef } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { freeAt, giveTo } from '../../engine/run/run-steps.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import type { ReadSplit, SplitEnd } from '../../engine/stream/split.ts';
import { batchStream, setOrigin } from '../../engine/stream/stream.ts';
import { type Exchange, mostPartitions } from '../exchange/exchange.ts';
import type { ReadRowsParams, ReadRowsValues } from '../tasks/reading-tasks.ts';
import { runTask } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';
import { portableOf, runChain } from './operator-chain.ts';
import {
  eachOf,
  type GroupEnd,
  isGuess,
  readSplits,
  type RowsBefore,
  schemaPartition,
  type SplitGroup,
} from './read-splits.ts';
import type { OtherRows, RowPart, RowsWork, RowUnit, RowsInput } from './task-input.ts';

const STAGE = 'read-rows';

/** A split of more stored bytes is not read by a task but by the calling thread, batch by batch. */
const MOST_STORED = 32 << 20;

const NO_ROWS: RowsBefore = { rows: 0, lines: 0 };

/** Result of a task. Without `held`, the rows were too large to return, and the calling thread reads them. */
interface ReadRows extends GroupEnd {
  rows: number;
  end: SplitEnd | null;
  readonly held?: HeldRows;
}

/** Batches as an Arrow IPC stream. */
interface HeldRows {
  readonly bytes: Uint8Array;
  readonly kept: Uint32Array;
  readonly origins: ReadRowsValues['origins'];
}

/** The rows of one task after it has divided them among the parts of an exchange. */
export interface DividedRows extends GroupEnd {
  /** All partitions that the task returned, including those that are not needed. */
  readonly refs: readonly PartitionRef[];
  readonly divided: NonNullable<ReadRowsValues['divided']>;
}

/** Division of rows by the tasks of an exchange. */
export interface Division {
  readonly by: Exchange;
  readonly parts: number;
  /** For an exchange by range. */
  readonly bounds?: PartitionRef;
}

/** Runs the tasks that read rows and apply a plan's operators. `ctx` holds the partitions they return. */
export class RowTasks {
  readonly #work: RowsWork;
  readonly #ctx: ExecutionContext;
  readonly #name = dataSetName('rows');
  #started = 0;

  constructor(work: RowsWork, ctx: ExecutionContext) {
    [this.#work, this.#ctx] = [work, ctx];
  }

  /** The rows after the operators, in the order of the input rows. */
  async *batches(): AsyncGenerator<RecordBatch> {
    await this.#giveSchema();
    const { taken } = this.#work;
    if (taken.kind === 'splits') {
      const read = (group: SplitGroup, ctx: ExecutionContext) => this.#readSplits(group, ctx);
      for await (const { splits, read: rows, before } of this.#ofSplits(taken, read))
        yield* rows.held
          ? this.#batchesOf(rows.held, before)
          : this.#runHere(this.#splitsHere(splits, taken.readHere, rows), []);
      return;
    }
    const read = async (unit: RowUnit) => ({
      unit,
      held: unit.small ? undefined : await this.#readUnit(unit),
    });
    for await (const { unit, held } of mapOrdered(unitsOf(taken), this.#atOnce, read)) {
      yield* held
        ? this.#batchesOf(held, NO_ROWS)
        : this.#runHere(unit.batches(this.#work.source, this.#ctx), unit.others);
      await unit.free(this.#ctx);
    }
  }

  /** The rows after the operators, divided into the parts of an exchange, task by task. */
  async *divided(division: Division): AsyncGenerator<DividedRows> {
    await this.#giveSchema();
    const { taken } = this.#work;
    let started = 0;
    if (taken.kind === 'splits') {
      const numbers = new Map(taken.groups.map((group, number) => [group, number]));
      const read = (group: SplitGroup, ctx: ExecutionContext, first: SplitGroup) =>
        this.#divide({ splits: group }, division, numbers.get(first) ?? 0, ctx);
      const drop = async ({ refs }: DividedRows) => freeAt(this.#ctx, STAGE, this.#work.device.place, refs);
      for await (const { read: rows } of this.#ofSplits(taken, read, drop)) yield rows;
      return;
    }
    const read = async (unit: RowUnit) => {
      const rows = await this.#divide({ splits: [], unit }, division, started++, this.#ctx);
      await unit.free(this.#ctx);
      return rows;
    };
    yield* mapOrdered(unitsOf(taken), this.#dividedAtOnce, read);
  }

  /**
   * Rows of at most `most` tasks, evenly spaced, for an estimate of the distribution of keys. `operatorOf`
   * returns the operator that draws a task's sample, which runs after the others. Some text splits start at a
   * guessed byte; one whose guess is wrong adds no rows.
   */
  async samples(operatorOf: (task: number) => Operator, most: number): Promise<RecordBatch[]> {
    await this.#giveSchema();
    const { taken, schema } = this.#work;
    const tasks: readonly OneTask[] =
      taken.kind === 'splits'
        ? taken.groups.map((splits) => ({ splits }))
        : (await allOf(unitsOf(taken))).map((unit) => ({ splits: [], unit }));
    const step = Math.max(1, tasks.length / most);
    const chosen = Array.from({ length: Math.min(most, tasks.length) }, (_, i) => Math.floor(i * step));
    const read = async (task: number) => {
      const last = operatorOf(task);
      const { held } = await this.#read(tasks[task], this.#ctx, [last]).catch((error: unknown) => {
        const { splits } = tasks[task];
        if (error instanceof DataError && splits.length > 0 && isGuess(splits)) return { held: undefined };
        throw error;
      });
      return held ? [...this.#batchesOf(held, NO_ROWS, last.outputSchema(schema))] : [];
    };
    return (await allOf(mapOrdered(eachOf(chosen), this.#atOnce, read))).flat();
  }

  /** Most groups of splits that are being read, or are read and wait for the consumer. */
  get #atOnce(): number {
    return this.#work.device.parallelism + 2;
  }

  /**
   * Most dividing tasks that are running, or have results that wait for the result of an earlier task: a few
   * more than threads, since tasks do not take equally long.
   */
  get #dividedAtOnce(): number {
    return dividedAtOnce(this.#work.device.parallelism);
  }

  async *#ofSplits<Read extends GroupEnd>(
    { groups, whenRead }: Extract<RowsInput, { readonly kind: 'splits' }>,
    read: (group: SplitGroup, ctx: ExecutionContext, first: SplitGroup) => Promise<Read>,
    drop?: (read: Read) => Promise<void>,
  ) {
    const atOnce = drop ? this.#dividedAtOnce : this.#atOnce;
    yield* readSplits({ groups, atOnce, read, ...(drop && { drop }) }, this.#ctx);
    whenRead?.();
  }

  #giveSchema(): Promise<void> {
    const { device, source } = this.#work;
    return giveTo(this.#ctx, device.place, [[this.#schemaRef, schemaPartition(source)]]);
  }

  *#batchesOf(
    { bytes, kept, origins }: HeldRows,
    before: RowsBefore,
    schema = this.#work.schema,
  ): Generator<RecordBatch> {
    let [at, taken] = [0, 0];
    for (const { data } of RecordBatchReader.from(bytes)) {
      // A stream without batches yields one batch without rows.
      if (at === origins.length) return;
      const { kept: rows, ...origin } = origins[at++];
      const own = rows === undefined ? {} : { kept: kept.subarray(taken, (taken += rows)) };
      const batch = new RecordBatch(schema, data);
      yield setOrigin(batch, { ...origin, ...own, firstRow: origin.firstRow + before.rows });
    }
  }

  /** Runs the operators in the calling thread. */
  async *#runHere(
    rows: AsyncIterable<RecordBatch>,
    ofUnit: readonly OtherRows[],
  ): AsyncGenerator<RecordBatch> {
    const { source, operators, others = [] } = this.#work;
    const sides = [...ofUnit, ...others].map(({ schema, unit }) =>
      batchStream(schema, unit.batches(schema, this.#ctx)),
    );
    yield* runChain(operators, batchStream(source, rows), sides, this.#ctx);
  }

  /** Reads the rows of splits batch by batch. Their number and end are known after the last batch. */
  async *#splitsHere(splits: SplitGroup, readHere: ReadSplit, read: ReadRows): AsyncGenerator<RecordBatch> {
    for (const split of splits) {
      const batches = readHere(split, this.#work.source, { signal: this.#ctx.signal, takesFaults: false });
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

  async #readSplits(splits: SplitGroup, ctx: ExecutionContext): Promise<ReadRows> {
    if (splits.some(({ bytes }) => bytes > MOST_STORED)) return { rows: 0, end: null };
    return this.#read({ splits }, ctx);
  }

  async #readUnit(unit: RowUnit): Promise<HeldRows | undefined> {
    return (await this.#read({ splits: [], unit }, this.#ctx)).held;
  }

  async #read(taken: OneTask, ctx: ExecutionContext, more: readonly Operator[] = []): Promise<ReadRows> {
    const rows = partitionRef(`${this.#name}/rows`, this.#started++);
    const operators = portableOf([...this.#work.operators, ...more]);
    const partitions = { taken, schema: this.#schemaRef, outputs: { rows } };
    const task = rowsTask(this.#work, partitions, { operators });
    const { values, handed } = await runTask(ctx, STAGE, this.#work.device.place, task, { handsOut: [rows] });
    if (!values.complete) return { rows: 0, end: null };
    const { bytes, kept } = handed[0].columns as { bytes: Uint8Array; kept: Uint32Array };
    return { rows: values.rows, end: values.end, held: { bytes, kept, origins: values.origins } };
  }

  async #divide(
    taken: OneTask,
    { by, parts, bounds }: Division,
    number: number,
    ctx: ExecutionContext,
  ): Promise<DividedRows> {
    const name = `${this.#name}/divided/${this.#started++}`;
    const refs = Array.from({ length: mostPartitions(parts) }, (_, partition) =>
      partitionRef(name, partition),
    );
    const outputs = Object.fromEntries(refs.map((ref, partition) => [`divided.${partition}`, ref]));
    const partitions = { taken, schema: this.#schemaRef, outputs };
    const task = rowsTask(this.#work, partitions, { exchange: { by, parts, task: number } });
    const inputs = { ...task.inputs, ...(bounds && { bounds }) };
    const { values } = await runTask(ctx, STAGE, this.#work.device.place, { ...task, inputs });
    const { divided = { rows: 0, bytes: [], firsts: [] } } = values;
    return { rows: values.rows, end: values.end, refs, divided };
  }

  get #schemaRef(): PartitionRef {
    return partitionRef(`${this.#name}/schema`);
  }
}

/** Most dividing tasks whose rows are in memory. */
export function dividedAtOnce(threads: number): number {
  return threads + Math.ceil(threads / 4);
}

async function allOf<T>(elements: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const element of elements) all.push(element);
  return all;
}

function unitsOf(taken: RowsInput): AsyncIterable<RowUnit> {
  if (taken.kind !== 'units') throw new Error(`expected units of rows, got ${taken.kind}`);
  return taken.units;
}

/** A task whose rows are larger returns none; the calling thread reads them, batch by batch. */
const MOST_ROW_BYTES = 64 << 20;

/** The rows of one task. */
interface OneTask {
  readonly splits: SplitGroup;
  readonly unit?: RowUnit;
}

/** Makes one task of a work. `schema`: a partition with the columns of the input rows. */
function rowsTask(
  { operators, others: ofAll = [] }: Pick<RowsWork, 'operators' | 'others'>,
  {
    taken: { splits, unit },
    schema,
    outputs,
  }: {
    readonly taken: OneTask;
    readonly schema: PartitionRef;
    readonly outputs: TaskOf<'read-rows'>['outputs'];
  },
  more: Partial<ReadRowsParams>,
): TaskOf<'read-rows'> {
  const [parts, otherParts] = [new Inputs('parts'), new Inputs('others')];
  const params: ReadRowsParams = {
    splits,
    parts: parts.piecesOf(unit?.parts ?? []),
    others: [...(unit?.others ?? []), ...ofAll].map(({ name, columns, unit: other }) => ({
      columns: otherParts.numberOf(columns),
      parts: otherParts.piecesOf(other.parts),
      ...(name && { name }),
    })),
    operators: portableOf(operators),
    takesFaults: false,
    maximumBytes: MOST_ROW_BYTES,
    ...more,
  };
  return { kernel: 'read-rows', inputs: { schema, ...parts.refs, ...otherParts.refs }, outputs, params };
}

/** Inputs `name.0`, `name.1`, ... of a task: each partition once, since many parts may be pieces of it. */
class Inputs<Name extends string> {
  readonly refs: Record<`${Name}.${number}`, PartitionRef> = {} as never;
  readonly #name: Name;
  readonly #numbers = new Map<PartitionRef, number>();

  constructor(name: Name) {
    this.#name = name;
  }

  numberOf(ref: PartitionRef): number {
    const known = this.#numbers.get(ref);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(ref, number);
    this.refs[`${this.#name}.${number}`] = ref;
    return number;
  }

  piecesOf(parts: readonly RowPart[]): (readonly [input: number, piece: number])[] {
    return parts.map(({ of, piece }) => [this.numberOf(of.ref), piece]);
  }
}
