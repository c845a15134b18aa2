import { DataType, type Field, type RecordBatch, type Schema } from 'apache-arrow';
import { counted, formatBytes } from '../../engine/format.ts';
import { wordsOfType } from '../../engine/keys/row-words.ts';
import { dataSetName, type PartitionRef, partitionRef } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Garbage } from '../../engine/run/garbage.ts';
import { giveTo } from '../../engine/run/run-steps.ts';
import { boundsOf } from '../../engine/sorting/range-parts.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { Aggregate } from '../dataflow/aggregate/aggregate.ts';
import { DistinctRows, MOST_MERGED } from '../dataflow/distinct-rows.ts';
import { DropNulls } from '../dataflow/drop-nulls.ts';
import { Filter } from '../dataflow/filter.ts';
import { Project } from '../dataflow/project.ts';
import { columnsAs } from '../dataflow/row-operator.ts';
import { Sample } from '../dataflow/sample.ts';
import { SortRows } from '../dataflow/sort-rows.ts';
import { splitCalls, wholePartitions } from '../dataflow/window/whole-partitions.ts';
import { type WindowOptions, WindowRows } from '../dataflow/window/window-rows.ts';
import { type ChainOperator, isBinary } from '../pipeline/operator-chain.ts';
import { dividedAtOnce, type DividedRows, type Division, RowTasks } from '../pipeline/read-rows-tasks.ts';
import { eachOf, type SplitGroup } from '../pipeline/read-splits.ts';
import {
  afterExchange,
  cutParts,
  type ExchangedPlan,
  keepPartitions,
  type KeptPartition,
  type PartsPlace,
  type RowExchange,
  type RowPart,
  type RowsWork,
  RowUnit,
  spillExcess,
  unitsOfStream,
} from '../pipeline/task-input.ts';
import type { ExchangeRoom, RowStage } from './exchange-room.ts';
import { describeExchange, type Exchange, type PartSizes, mostPartitions } from './exchange.ts';
import { SampleKeys } from './sample-keys.ts';

/** Number of units (rows for one task) that are read from a stream before the number of parts is chosen. */
const FIRST_UNITS = 8;

/** Prefix of the names of exchanges in measures. */
export const EXCHANGE = 'exchange ';

/** Name of the measure of bytes that exchanges wrote to files. */
export const EXCHANGE_IN_FILES = 'exchange in files';

/** The input of an exchange: the rows of a plan. */
export interface ExchangeInput extends ExchangedPlan {
  readonly schema: Schema;
  readonly device: RowsWork['device'];
  readonly room: ExchangeRoom;
  readonly sizes: PartSizes;
}

/** An input whose own exchanges have run, and whose first rows were read if it is a stream. */
export interface OpenInput {
  readonly work: RowsWork;
  /** Bytes of all rows in memory; undefined if not known. */
  readonly bytes: number | undefined;
  /** All rows, as inputs of tasks, if the stream has ended. */
  readonly units?: readonly RowUnit[];
}

export function partsPlace({ device, room }: ExchangeInput): PartsPlace {
  return { place: device.place, room };
}

/** Estimated bytes of an input's rows in memory, before rows are read; undefined if not known. */
export function estimatedBytes(input: Pick<ExchangeInput, 'work' | 'schema'>): number | undefined {
  return taskBytes(input)?.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Estimated bytes of the rows that the work's operators return. Undefined after a join, which may return many
 * times its input.
 */
function bytesAfter({ bytes, operators }: RowsWork): number | undefined {
  return operators.some(isBinary) ? undefined : bytes;
}

/** Runs the exchanges that the input depends on, and reads the first rows of a stream. */
export async function openInput(input: ExchangeInput, ctx: ExecutionContext): Promise<OpenInput> {
  const { schema, device, work } = input;
  if (!('stream' in work)) {
    const ready = await afterExchange(work, ctx);
    if (ready.taken.kind === 'splits') return { work: ready, bytes: estimatedBytes(input) };
    return { work: ready, bytes: bytesAfter(ready) };
  }
  const units = unitsOfStream(
    schema,
    await work.stream(ctx),
    { ...partsPlace(input), bytes: input.sizes.ofStream },
    ctx,
  );
  const workOf = (all: AsyncIterable<RowUnit>): RowsWork => ({
    source: schema,
    schema,
    operators: [],
    device,
    taken: { kind: 'units', units: all },
  });
  const first: RowUnit[] = [];
  for (let next = await units.next(); !next.done; next = await units.next()) {
    first.push(next.value);
    if (first.length === FIRST_UNITS) return { work: workOf(followed(first, units)), bytes: undefined };
  }
  return { work: workOf(eachOf(first)), bytes: bytesOf(first), units: first };
}

/**
 * Runs the tasks of `work`, which divide their rows among parts, and keeps the results in memory or in files.
 */
export async function dividedRows(
  work: RowsWork,
  division: Division,
  home: PartsPlace,
  ctx: ExecutionContext,
): Promise<DividedParts> {
  const all = new DividedParts(division.parts);
  const planned = estimatedBytes({ work, schema: work.schema });
  const name = [
    EXCHANGE + describeExchange(division.by),
    ...(planned === undefined ? [] : [`planned about ${formatBytes(planned)} of input`]),
  ].join(', ');
  for await (const { refs, divided } of new RowTasks(work, ctx).divided(division)) {
    const { bytes, firsts } = divided;
    const partitions = firsts.map((first, number) => {
      const own = bytes.slice(first, firsts[number + 1]).filter((part) => part > 0);
      return { ref: refs[number], bytes: own.reduce((sum, part) => sum + part, 0), left: own.length };
    });
    const kept = await keepPartitions(partitions, home, ctx);
    const bytesDown = bytesOf(partitions);
    ctx.metrics.add(name, { rows: divided.rows, bytesDown });
    if (kept.some(({ spilled }) => spilled)) ctx.metrics.add(EXCHANGE_IN_FILES, { bytesDown });
    all.add(kept, divided);
  }
  return all;
}

function bytesOf(parts: readonly { readonly bytes: number }[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function* followed(first: readonly RowUnit[], units: AsyncIterable<RowUnit>): AsyncGenerator<RowUnit> {
  yield* first;
  yield* units;
}

/** The rows that one task has divided among the parts. It stores consecutive parts in one partition. */
interface DividedTask {
  readonly partitions: readonly KeptPartition[];
  /** First part of each partition. */
  readonly firsts: readonly number[];
  /** Bytes of each part. */
  readonly bytes: Float64Array;
  /** Partition number of each part. */
  readonly places: Uint8Array;
}

/**
 * Finds the rows of each part of an exchange in the partitions that the tasks made. Its memory is a few bytes
 * for each part of each task.
 */
export class DividedParts {
  /** Bytes of each part. */
  readonly bytes: Float64Array;
  readonly #tasks: DividedTask[] = [];

  constructor(parts: number) {
    this.bytes = new Float64Array(parts);
  }

  get parts(): number {
    return this.bytes.length;
  }

  get total(): number {
    return this.bytes.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Adds the rows of the next task. */
  add(partitions: readonly KeptPartition[], { bytes, firsts }: DividedRows['divided']): void {
    const places = new Uint8Array(this.parts);
    for (const [number, first] of firsts.entries()) places.fill(number, first);
    this.#tasks.push({ partitions, firsts, bytes: Float64Array.from(bytes), places });
    for (const [part, own] of bytes.entries()) this.bytes[part] += own;
  }

  *partitions(): Generator<KeptPartition> {
    for (const { partitions } of this.#tasks) yield* partitions;
  }

  /** The rows of the parts [first, end): part by part, and within a part in the order of tasks. */
  ofParts(first: number, end: number): RowPart[] {
    return Array.from({ length: end - first }, (_, i) => this.#ofPart(first + i)).flat();
  }

  #ofPart(part: number): RowPart[] {
    return this.#tasks.flatMap(({ partitions, firsts, bytes, places }) => {
      const place = places[part];
      return bytes[part] === 0
        ? []
        : [{ of: partitions[place], piece: part - firsts[place], bytes: bytes[part] }];
    });
  }
}

interface ExchangedOptions {
  readonly by: Exchange;
  /** Number of parts if the caller chose it; then each part is one task. */
  readonly parts: number | undefined;
  /** Operators on the rows of each part. */
  readonly after: readonly ChainOperator[];
}

/** The rows of an input, divided by an exchange. */
export class ExchangedRows implements RowExchange {
  readonly #input: ExchangeInput;
  readonly #options: ExchangedOptions;

  constructor(input: ExchangeInput, options: ExchangedOptions) {
    [this.#input, this.#options] = [input, options];
  }

  get inputs(): readonly ExchangedPlan[] {
    return [this.#input];
  }

  describe(): string {
    const { by, parts } = this.#options;
    const bytes = estimatedBytes(this.#input);
    const number = parts ?? (bytes === undefined ? undefined : this.#input.sizes.partsOf(bytes));
    const about = bytes === undefined ? '' : `, ${this.#input.room.placeOf(bytes, this.stages())}`;
    const to = number === undefined ? 'as many parts as the rows need' : counted(number, 'part');
    return `exchange ${describeExchange(by)} to ${to}${about}`;
  }

  stages(): RowStage[] {
    const { by, parts: given, after } = this.#options;
    const { sizes, device } = this.#input;
    const bytes = estimatedBytes(this.#input);
    const parts = given ?? sizes.partsOf(bytes);
    const exchange = describeExchange(by);
    const ofPart = Math.max(sizes.part, (bytes ?? 0) / parts);
    const windows = after.some((one) => one instanceof WindowRows);
    const inPieces = windows && !this.#holdsPartitions;
    const stage = partsStage(
      `after the exchange ${exchange}`,
      inPieces ? MOST_SHARE * sizes.part : ofPart,
      device.parallelism,
    );
    return [...dividingStages(exchange, parts, this.#input, device.parallelism), stage];
  }

  async begin(ctx: ExecutionContext): Promise<RowsWork> {
    const { by, parts: given, after } = this.#options;
    const { schema, device } = this.#input;
    const { work, bytes, units: all } = await openInput(this.#input, ctx);
    const isOne = given === undefined && all !== undefined && all.length <= 1;
    const parts = given ?? (bytes === undefined ? undefined : this.#input.sizes.partsOf(bytes));
    const home = partsPlace(this.#input);
    const own = { source: schema, schema, operators: after, device };
    if (isOne) return { ...own, bytes: bytesOf(all), taken: { kind: 'units', units: eachOf(all) } };
    const windows = after.some((one) => one instanceof WindowRows);
    const isWhole = windows && by.kind !== 'hash';
    if (isWhole && (bytes ?? Infinity) > this.#mostBytes) return this.#unitsOf(this.streamed(work, ctx), ctx);
    const divided = isWhole
      ? await dividedRows(work, { by: { kind: 'evenly' }, parts: 1 }, home, ctx)
      : await this.#divided(work, by, parts, ctx);
    const units = eachUnit(divided, home, given === undefined ? this.#input.sizes.unit : 0);
    if (windows && divided.bytes.some((part) => part > this.#mostBytes))
      return this.#unitsOf(this.#afterUnits(units, ctx), ctx);
    if (!windows && by.kind !== 'range') {
      const name = `after the exchange ${describeExchange(by)}`;
      await reserveParts(name, [divided], { input: this.#input, bytes: divided.bytes }, ctx);
    }
    return { ...own, bytes: divided.total, taken: { kind: 'units', units } };
  }

  async #divided(
    work: RowsWork,
    by: Exchange,
    parts: number | undefined,
    ctx: ExecutionContext,
  ): Promise<DividedParts> {
    const { sizes } = this.#input;
    const home = partsPlace(this.#input);
    if (by.kind !== 'range')
      return dividedRows(work, { by, parts: parts ?? sizes.partsOf(undefined) }, home, ctx);
    // The bounds of ranges can be chosen only when all rows have been read.
    const all = await collected(work);
    const number = parts ?? sizes.partsOf(bytesAfter(all));
    if (number === 1) return dividedRows(all, { by: { kind: 'evenly' }, parts: 1 }, home, ctx);
    const at = { keys: by.keys, parts: number, place: home.place, partBytes: sizes.part };
    const bounds = await rangeBounds(all, at, ctx);
    if (bounds === undefined) return new DividedParts(0);
    return dividedRows(all, { by, parts: number, bounds }, home, ctx);
  }

  /** Most bytes of a part of windows that one task takes. */
  get #mostBytes(): number {
    const { sizes, room, device } = this.#input;
    const share = room.bytes / partsStage('', 1, device.parallelism).bytes;
    return sizes.part * Math.max(MOST_SHARE, Math.min(MOST_PARTS_OF_TASK, share / sizes.part));
  }

  get #holdsPartitions(): boolean {
    return this.#options.after.some(
      (one) => one instanceof WindowRows && new WindowRows(splitCalls(one.options).others).holdsPartitions,
    );
  }

  /** Rows of a stream as the work of an exchange. */
  #unitsOf(stream: BatchStream, ctx: ExecutionContext): RowsWork {
    const { device, sizes } = this.#input;
    const at = { ...partsPlace(this.#input), bytes: sizes.unit };
    const units = unitsOfStream(stream.schema, stream, at, ctx);
    return {
      source: stream.schema,
      schema: stream.schema,
      operators: [],
      device,
      taken: { kind: 'units', units },
    };
  }

  /** The rows of all parts after the operators. Parts that are too large for a task are streamed. */
  #afterUnits(units: AsyncIterable<RowUnit>, ctx: ExecutionContext): BatchStream {
    const { after } = this.#options;
    const { schema, device } = this.#input;
    const most = this.#mostBytes;
    const workOf = (some: readonly RowUnit[], operators: readonly ChainOperator[]): RowsWork => ({
      source: schema,
      schema: operators.reduce((own, one) => (one as Operator).outputSchema(own), schema),
      operators,
      device,
      bytes: bytesOf(some),
      taken: { kind: 'units', units: eachOf(some) },
    });
    const batches = async function* (this: ExchangedRows) {
      let small: RowUnit[] = [];
      for await (const unit of units) {
        if (unit.bytes <= most) {
          small.push(unit);
          continue;
        }
        yield* new RowTasks(workOf(small, after), ctx).batches();
        small = [];
        const home = partsPlace(this.#input);
        const pieces = cutParts(unit.parts, this.#input.sizes.unit);
        yield* this.streamed(
          workOf(
            pieces.map((piece) => new RowUnit(piece, home)),
            [],
          ),
          ctx,
        );
      }
      yield* new RowTasks(workOf(small, after), ctx).batches();
    };
    return batchStream(workOf([], after).schema, batches.call(this));
  }

  /**
   * The rows of a work after the operators, for any number of rows in a partition: an exchange sorts them for
   * each window, and the calling thread computes its functions over the stream.
   */
  streamed(work: RowsWork, ctx: ExecutionContext): BatchStream {
    const { after } = this.#options;
    const { device, room, sizes } = this.#input;
    if (this.#holdsPartitions)
      room.keepFor([partsStage('window functions of whole partitions', this.#bytesOf(work), 1)]);
    const home = partsPlace(this.#input);
    const sorted = async (own: RowsWork, sort: SortRows): Promise<RowsWork> => {
      const all = await collected(own);
      const keys = sort.keys.map((key) => ({ ...key }));
      const parts = sizes.partsOf(bytesAfter(all) ?? estimatedBytes({ work: all, schema: all.schema }));
      const divided = await this.#divided(all, { kind: 'range', keys }, parts, ctx);
      const units = eachUnit(divided, home, sizes.unit);
      const { schema } = own;
      return {
        source: schema,
        schema,
        operators: [sort],
        device,
        bytes: divided.total,
        taken: { kind: 'units', units },
      };
    };
    const batches = async function* (this: ExchangedRows) {
      let own = work;
      for (const one of after) {
        if (one instanceof SortRows) {
          own = await sorted(own, one);
          continue;
        }
        const stream = await this.#windows((one as WindowRows).options, own, ctx);
        if (one === after.at(-1)) yield* stream;
        else own = this.#unitsOf(stream, ctx);
      }
    };
    const schema = after.reduce((own, one) => (one as Operator).outputSchema(own), work.schema);
    return batchStream(schema, batches.call(this));
  }

  /** Bytes of a work's rows, as far as they are known. */
  #bytesOf({ bytes }: RowsWork): number {
    return bytes ?? estimatedBytes(this.#input) ?? 0;
  }

  /** The results of a window over a work's sorted rows, in the calling thread, with limits of the rows that it holds. */
  async #windows(options: WindowOptions, work: RowsWork, ctx: ExecutionContext): Promise<BatchStream> {
    const { sizes, room } = this.#input;
    const { whole, others } = splitCalls(options);
    const all = whole.calls.length === 0 ? work : await collected(work, true);
    // Also the joined columns, the bounds of frames and the results.
    const each = 2 * rowBytes(work.schema) + 64;
    const most = Math.floor(Math.max(2 * sizes.part, room.bytes / 2) / each);
    const budget = room.leastFor(partsStage('', this.#bytesOf(work), 1).bytes);
    const limits = {
      rows: Math.ceil(sizes.part / each),
      ...(!this.#holdsPartitions && Number.isFinite(most) && { most, budget }),
    };
    const rows = () => batchStream(all.schema, new RowTasks(all, ctx).batches());
    const { schema } = all;
    const stream = whole.calls.length === 0 ? rows() : wholePartitions(whole, schema, rows, ctx);
    const result = others.calls.length === 0 ? stream : new WindowRows(others, limits).execute(stream, ctx);
    const inOrder = new WindowRows(options).outputSchema(schema);
    const garbage = new Garbage({ limit: Math.max(2 * sizes.part, room.bytes / 4) });
    const given = (batch: RecordBatch) => {
      garbage.add(each * batch.numRows);
      garbage.collectIfDue();
      return columnsAs(batch, inOrder);
    };
    return batchStream(inOrder, mapped(result, given));
  }
}

async function* mapped<T>(stream: AsyncIterable<T>, made: (one: T) => T): AsyncGenerator<T> {
  for await (const one of stream) yield made(one);
}

/** Parts of windows are at most this number of times as large as others, so that most need no exchange of their own. */
const MOST_SHARE = 1.5;

/** Where memory is not scarce, a task takes a part of windows of at most this number of usual parts. */
const MOST_PARTS_OF_TASK = 4;

/** The same work, with units that can be read twice: to sample their keys, or with `twice` by all tasks. */
async function collected(work: RowsWork, twice = false): Promise<RowsWork> {
  const { taken } = work;
  if (taken.kind !== 'units') return work;
  const units: RowUnit[] = [];
  for await (const unit of taken.units) units.push(unit);
  if (twice) for (const unit of units) unit.again();
  return {
    ...work,
    bytes: bytesOf(units),
    taken: { kind: 'units', units: { [Symbol.asyncIterator]: () => eachOf(units) } },
  };
}

/**
 * Yields the inputs of the tasks after the exchange (units), made on demand. If `least` is 0, each part is a
 * unit. Otherwise consecutive parts are joined up to `least` bytes; a larger part is a unit of its own, and
 * units without bytes are left out.
 */
async function* eachUnit(divided: DividedParts, home: PartsPlace, least: number): AsyncGenerator<RowUnit> {
  for (let part = 0; part < divided.parts;) {
    const first = part;
    let bytes = divided.bytes[part++];
    if (least > 0)
      while (part < divided.parts && bytes + divided.bytes[part] <= least) bytes += divided.bytes[part++];
    if (bytes > 0 || least === 0) yield new RowUnit(divided.ofParts(first, part), home);
  }
}

/** The sample has about SAMPLED rows of at most MOST_TASKS tasks, and at most every EVERYth row. */
const MOST_TASKS = 64;
const SAMPLED = 1 << 10;
const EVERY = 32;

/**
 * Chooses the bounds for dividing rows into parts by ranges of sort keys, from a sample of the rows. Returns
 * them as a partition at `place`; undefined if there are no rows.
 */
async function rangeBounds(
  work: RowsWork,
  {
    keys,
    parts,
    place,
    partBytes,
  }: {
    readonly keys: readonly SortKey[];
    readonly parts: number;
    readonly place: Place;
    /** Bytes of a task's rows if the rows were exchanged before. */
    readonly partBytes: number;
  },
  ctx: ExecutionContext,
): Promise<PartitionRef | undefined> {
  const sampled = (every: number, tasks: number) =>
    new RowTasks(work, ctx).samples((task) => new SampleKeys(keys, task, every), tasks);
  const most = (taskBytes({ work, schema: work.source }) ?? [partBytes]).reduce((a, b) => Math.max(a, b), 0);
  const every = Math.ceil(most / Math.max(1, rowBytes(work.source)) / SAMPLED);
  let samples = await sampled(Math.max(EVERY, every), MOST_TASKS);
  // The sample may miss all rows if they are few; then the first rows of every task are used.
  if (samples.length === 0) samples = await sampled(1, Number.POSITIVE_INFINITY);
  if (samples.length === 0) return undefined;
  const bounds = boundsOf(samples, keys, parts);
  const stream = new RowStream(bounds.schema, false);
  stream.add(bounds);
  const ref = partitionRef(dataSetName('bounds'));
  const columns = { bytes: stream.takeShared() };
  await giveTo(ctx, place, [[ref, { layout: 'arrow-stream', rows: bounds.numRows, columns }]]);
  return ref;
}

/**
 * The rows of several inputs, one input after the other. The rows that one task of an input returns become
 * the input of one task (a unit).
 */
export class UnitedRows implements RowExchange {
  readonly #schema: Schema;
  readonly inputs: readonly ExchangeInput[];

  constructor(schema: Schema, inputs: readonly ExchangeInput[]) {
    [this.#schema, this.inputs] = [schema, inputs];
  }

  describe(): string {
    return 'in the tasks of the inputs, one input after the other';
  }

  stages(): RowStage[] {
    return this.inputs.flatMap((input) => dividingStages('of a union', 1, input, input.device.parallelism));
  }

  async begin(ctx: ExecutionContext): Promise<RowsWork> {
    const schema = this.#schema;
    const known = this.inputs.map(estimatedBytes);
    return {
      source: schema,
      schema,
      operators: [],
      device: this.inputs[0].device,
      ...(known.every((bytes) => bytes !== undefined) && {
        bytes: known.reduce((sum, bytes) => sum + bytes),
      }),
      taken: { kind: 'units', units: this.#units(ctx) },
    };
  }

  async *#units(ctx: ExecutionContext): AsyncGenerator<RowUnit> {
    for (const input of this.inputs) {
      const { work } = await openInput(input, ctx);
      if (work.taken.kind === 'units' && work.operators.length === 0) {
        yield* work.taken.units;
        continue;
      }
      const home = partsPlace(input);
      const division = { by: { kind: 'evenly' }, parts: 1 } as const;
      for await (const { refs, divided } of new RowTasks(work, ctx).divided(division)) {
        if (divided.rows === 0) continue;
        const [bytes] = divided.bytes;
        const [of] = await keepPartitions([{ ref: refs[0], bytes, left: 1 }], home, ctx);
        yield new RowUnit([{ of, piece: 0, bytes }], home);
      }
    }
  }
}

/** Estimated bytes in memory for each byte in a file, if the file does not contain the number of rows. */
const UNPACKED = 4;

/**
 * Bytes in the calling thread for each partition that a task made: its entries, and its position in a file.
 */
const ENTRY_BYTES = 3 << 10;

/** Bytes for each part of a task: its size, its end and its checksum. */
const PART_BYTES = 32;

/**
 * Estimated bytes in memory of the rows of each task. Undefined if they are not known before rows are read.
 */
function taskBytes({ schema, work }: Pick<ExchangeInput, 'schema' | 'work'>): number[] | undefined {
  if ('stream' in work || work.taken.kind !== 'splits') return undefined;
  const each = rowBytes(schema);
  const most = mostGroups(work) * each;
  const bytesOfTask = (group: SplitGroup) =>
    group.reduce((sum, { rows, bytes }) => sum + (rows === undefined ? UNPACKED * bytes : rows * each), 0);
  return work.taken.groups.map((group) => Math.min(most, bytesOfTask(group)));
}

/** Stages of the exchanges that the input depends on. */
export function belowOf({ work }: Pick<ExchangeInput, 'work'>): readonly RowStage[] {
  return 'stream' in work || work.taken.kind !== 'exchange' ? [] : work.taken.exchange.stages();
}

/**
 * Estimates the memory for dividing an input's rows among parts, as stages: first the stages of the exchanges
 * that the input depends on, then its own tasks. In memory at a time: in each thread a task's input rows or a
 * table of them, the rows by part, a copy of these in one array, and the previous task's garbage; and the
 * results of further tasks that have ended.
 */
export function dividingStages(
  by: string,
  parts: number,
  { schema, sizes, work }: ExchangeInput,
  threads: number,
): RowStage[] {
  const tasks = taskBytes({ schema, work });
  const largest = tasks?.reduce((most, bytes) => Math.max(most, bytes), 0) ?? sizes.ofStream;
  const kept = (tasks?.length ?? 0) * (ENTRY_BYTES * mostPartitions(parts) + PART_BYTES * parts);
  const name = `exchange ${by}, tasks of ${formatBytes(largest)}`;
  return [...belowOf({ work }), { name, bytes: (4 * threads + dividedAtOnce(threads) + 1) * largest + kept }];
}

/**
 * Estimates the memory of the tasks that process the parts of an exchange. In memory at a time: in each
 * thread the rows of a part, the operators' state, the result, and the previous task's garbage; and two more
 * results that wait for the consumer. A key with very many rows needs more than this estimate.
 */
export function partsStage(name: string, bytes: number, threads: number): RowStage {
  return { name: `${name}, parts of ${formatBytes(bytes)}`, bytes: (4 * threads + 2) * bytes };
}

/**
 * Reserves memory for the tasks of parts of which some are larger than planned, since one key has very many rows;
 * `bytes`: of the rows of each task. Parts in memory go to files as far as that needs it. Throws CapacityError if
 * the budget is too small.
 */
export async function reserveParts(
  name: string,
  divided: readonly DividedParts[],
  { input, bytes }: { readonly input: ExchangeInput; readonly bytes: Iterable<number> },
  ctx: ExecutionContext,
): Promise<void> {
  const { sizes, room, device } = input;
  const largest = [...bytes].toSorted((a, b) => b - a).slice(0, device.parallelism);
  const most = largest[0] ?? 0;
  if (most <= MOST_SHARE * sizes.part) return;
  const all = largest.reduce((sum, one) => sum + one, 0);
  room.keepFor([{ name: `${name}, largest part ${formatBytes(most)}`, bytes: 4 * all + 2 * most }]);
  const home = partsPlace(input);
  for (const one of divided) await spillExcess(one.partitions(), home, ctx);
}

/**
 * The number of rows that a task returns at most, if its last operator merges rows with equal keys (a group
 * or `distinct`): the number of combinations of the keys' values, if it is known and so small that the operator
 * merges all rows, unless almost all of the first ones differ. Otherwise Infinity.
 */
function mostGroups({ operators, taken, schema }: RowsWork): number {
  const merged = mergedBy(operators.at(-1));
  const keys = merged === 'all' ? schema.fields.map(({ name }) => name) : merged;
  if (keys === undefined || taken.kind !== 'splits') return Number.POSITIVE_INFINITY;
  const counts = keys.map((key) => {
    const name = operators.slice(0, -1).reduceRight<string | undefined>(nameBefore, key);
    return (name !== undefined && taken.mostValues?.[name]) || Number.POSITIVE_INFINITY;
  });
  const most = counts.reduce((product, count) => product * count, 1);
  return most <= MOST_MERGED ? most : Number.POSITIVE_INFINITY;
}

function mergedBy(operator: ChainOperator | undefined): readonly string[] | 'all' | undefined {
  return operator instanceof Aggregate || operator instanceof DistinctRows ? operator.mergedBy : undefined;
}

/** Name of a column before an operator that keeps it unchanged; undefined if the operator may change it. */
function nameBefore(name: string | undefined, operator: ChainOperator): string | undefined {
  if (name === undefined) return undefined;
  if (operator instanceof Project) {
    const { projection } = operator;
    if (projection.kind === 'drop') return name;
    if (projection.kind === 'rename') return name === projection.to ? projection.from : name;
    const made = projection.columns.find((column) => column.name === name);
    if (made === undefined) return name;
    return made.value.kind === 'column' ? made.value.name : undefined;
  }
  const keeps = [Filter, DropNulls, Sample].some((kind) => operator instanceof kind);
  return keeps ? name : undefined;
}

/** Estimated bytes of a value of variable length, with its offset. */
const TEXT_BYTES = 24;

/** Estimated bytes of a row in memory. */
function rowBytes({ fields }: { readonly fields: readonly Field[] }): number {
  return fields.reduce((sum, { type }) => sum + valueBytes(type), 0);
}

function valueBytes(type: DataType): number {
  if (DataType.isDictionary(type)) return valueBytes(type.indices);
  if (DataType.isBool(type)) return 1;
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  if (DataType.isStruct(type)) return rowBytes({ fields: type.children });
  if (DataType.isFixedSizeList(type)) return type.listSize * valueBytes(type.children[0].type);
  return 4 * wordsOfType(type) || TEXT_BYTES;
}
