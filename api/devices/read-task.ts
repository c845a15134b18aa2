import { RecordBatch, RecordBatchStreamWriter, type Schema, tableFromIPC } from 'apache-arrow';
import { KeptBytes } from '../../connectors/arrow/ipc-bytes.ts';
import { readSplit } from '../../connectors/read-split.ts';
import type { TaskScope } from '../../cpu/handler.ts';
import { numberColumn } from '../../cpu/tasks/numbering/near-keys.ts';
import { throwIfAborted } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import { pagedArray, type Partition, sharedArray, type SharedColumn } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import { sharedClock } from '../../engine/threads/shared-clock.ts';
import { type DeviceSpan, fileSpan } from '../../engine/trace/trace.ts';
import type { SplitEnd } from '../../engine/stream/split.ts';
import { batchStream, originOf } from '../../engine/stream/stream.ts';
import { operatorFrom } from '../../operators/portable.ts';
import { BadRowCounter } from '../../operators/ratings/rows/bad-rows.ts';
import { type ChunkLimits, chunkLimits, RatingChunk, ratingRows, type RatingTypes, requireFewer, typesOf } from '../../operators/ratings/reading/rating-chunk.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import type { ChunkSummary, ReadParams, ReadRowsParams, ReadRowsValues } from '../../operators/tasks/reading-tasks.ts';
import type { OutcomeOf, KernelTasks } from '../../operators/tasks/tasks.ts';

/** A thread looks so often, in milliseconds, whether its task is cancelled. */
const LOOK_EVERY = 20;

/** The chunk that the task before has filled and copied. */
let lastChunk: WeakRef<RatingChunk> | undefined;

/** See `read-ratings` of ReadingTasks. */
export async function readRatingsTask(scope: TaskScope): Promise<OutcomeOf<KernelTasks['read-ratings']>> {
  return whileWanted(scope, (rows) => gather(scope, rows));
}

/** See `read-rows` of ReadingTasks. */
export async function readRowsTask(scope: TaskScope): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  return whileWanted(scope, (rows) => collect(scope.params as ReadRowsParams, rows));
}

async function whileWanted<Result>(scope: TaskScope, read: (rows: SplitRows) => Promise<Result>): Promise<Result> {
  const cancelling = new AbortController();
  const timer = setInterval(() => scope.cancelled() && cancelling.abort(), LOOK_EVERY);
  try {
    return await read(new SplitRows(tableFromIPC(scope.partition('schema').columns.bytes as Uint8Array).schema, cancelling.signal, () => scope.cancelled()));
  } finally {
    clearInterval(timer);
  }
}

async function collect(params: ReadRowsParams, source: SplitRows): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  const kept = new KeptBytes();
  const writer = new RecordBatchStreamWriter().reset(kept, source.schema);
  const origins: ReadRowsValues['origins'][number][] = [];
  let complete = true;
  for await (const batch of source.read(params, false)) {
    const { file, rowGroup, firstRow = 0 } = originOf(batch) ?? {};
    origins.push({ file, rowGroup, firstRow });
    // The batches get one schema object: another one would make the writer begin again.
    writer.write(new RecordBatch(source.schema, batch.data));
    complete = kept.length <= params.maximumBytes;
    if (!complete) break;
  }
  writer.finish();
  const bytes = complete ? kept.takeShared() : sharedArray(Uint8Array, 0);
  const { rows, end, spans } = source;
  return { rows, spans, bytesDown: bytes.length, values: { rows, end, complete, origins }, partitions: { rows: { layout: 'arrow-stream', rows, columns: { bytes } } } };
}

/** The rows of splits, one after the other. */
class SplitRows {
  readonly schema: Schema;
  readonly #signal: AbortSignal;
  readonly #cancelled: () => boolean;
  rows = 0;
  readonly spans: DeviceSpan[] = [];
  /** Of the last split. */
  end: SplitEnd | null = null;

  constructor(schema: Schema, signal: AbortSignal, cancelled: () => boolean) {
    [this.schema, this.#signal, this.#cancelled] = [schema, signal, cancelled];
  }

  get context(): ExecutionContext {
    return { signal: this.#signal, executor: new LocalExecutor([]), events: noEvents, metrics: new RunMetrics() };
  }

  /** `borrowed`: see ReadSplitOptions. */
  async *read({ splits, takesFaults }: Pick<ReadParams, 'splits' | 'takesFaults'>, borrowed: boolean): AsyncGenerator<RecordBatch> {
    for (const split of splits) {
      const [start, before] = [sharedClock(), this.rows];
      const batches = readSplit(split, this.schema, { signal: this.#signal, takesFaults, borrowed });
      try {
        for (;;) {
          const next = await batches.next();
          if (next.done) {
            this.end = next.value ?? null;
            break;
          }
          if (this.#cancelled()) throwIfAborted(AbortSignal.abort(), 'read');
          this.rows += next.value.numRows;
          yield next.value;
        }
      } finally {
        await batches.return(undefined);
        this.spans.push(fileSpan('reads', split.file, start, { rows: this.rows - before, bytes: split.bytes }));
      }
    }
  }
}

async function gather(scope: TaskScope, source: SplitRows): Promise<OutcomeOf<KernelTasks['read-ratings']>> {
  const params = scope.params as ReadParams;
  const operators = params.operators.map(operatorFrom);
  const selection = operators.pop() as SelectRatings;
  let stream = batchStream(source.schema, source.read(params, true));
  for (const operator of operators) stream = operator.execute(stream, source.context);
  const bad = new BadRowCounter();
  const selected = selection.select(stream, bad);
  const types = typesOf(selected.schema);
  const partitions: Record<string, Partition> = {};
  const chunks: ChunkSummary[] = [];
  const places = new ChunkPlaces(scope.hasInput('room') ? scope.partition('room') : undefined, params.room);
  const finish = (chunk: RatingChunk) => {
    const { reused, ...place } = places.next(chunk.rows);
    const { users, items } = chunk.numbered(place, (ids, codes) => numberColumn(scope, ids, codes));
    const { layout, columns } = chunk.values();
    const values = Object.fromEntries(Object.entries(columns).map(([name, numbers]) => [name, copyTo(name === 'values' ? place.values : pagedArray(Float64Array, chunk.rows), numbers)]));
    const at = chunks.length;
    partitions[`codes.${at}`] = { layout: 'coded-pairs', rows: chunk.rows, columns: { users: users.codes, items: items.codes }, reused };
    partitions[`values.${at}`] = { layout, rows: chunk.rows, columns: values, reused };
    partitions[`users.${at}`] = users.keys;
    partitions[`items.${at}`] = items.keys;
    chunks.push({ rows: chunk.rows, users: users.summary, items: items.summary });
  };
  const limits = () => chunkLimits(params.splits, chunks.length);
  let chunk = takeChunk(limits(), types);
  let rows = 0;
  for await (const batch of selected) {
    const ratings = ratingRows(batch, types);
    rows += batch.numRows;
    requireFewer(rows, params.maximumRows);
    for (let from = 0; from < batch.numRows; ) {
      from += chunk.append(ratings, from);
      if (!chunk.isFull) continue;
      finish(chunk);
      chunk.rows = 0;
      if (limits().rows !== chunk.limits.rows) chunk = new RatingChunk(limits(), types, true);
    }
  }
  if (chunk.rows > 0) finish(chunk);
  lastChunk = new WeakRef(chunk);
  return { rows, partitions, spans: source.spans, values: { chunks, bad: bad.found, rows: source.rows, end: source.end } } as OutcomeOf<KernelTasks['read-ratings']>;
}

function copyTo(target: Float32Array | Float64Array, values: SharedColumn): Float32Array | Float64Array {
  target.set(values as typeof target);
  return target;
}

/** The memory of chunks: one behind the other in the room for all rows, or of their own where there is none. */
class ChunkPlaces {
  readonly #room: Partition | undefined;
  #next: number;
  readonly #end: number;

  constructor(room: Partition | undefined, { from, to } = { from: 0, to: 0 }) {
    [this.#room, this.#next, this.#end] = [room, from, to];
  }

  next(rows: number): { readonly users: Uint32Array; readonly items: Uint32Array; readonly values: Float32Array; readonly reused: boolean } {
    if (this.#room === undefined || this.#next + rows > this.#end) {
      return { users: pagedArray(Uint32Array, rows), items: pagedArray(Uint32Array, rows), values: pagedArray(Float32Array, rows), reused: false };
    }
    const { users, items, values } = this.#room.columns as { users: Uint32Array; items: Uint32Array; values: Float32Array };
    const [from, to] = [this.#next, this.#next + rows];
    this.#next = to;
    return { users: users.subarray(from, to), items: items.subarray(from, to), values: values.subarray(from, to), reused: true };
  }
}

/** A chunk to fill: that of the task before, unless it has other columns or its memory was collected. */
function takeChunk(limits: ChunkLimits, types: RatingTypes): RatingChunk {
  const last = lastChunk?.deref();
  lastChunk = undefined;
  const same = last !== undefined && last.limits.rows === limits.rows && JSON.stringify(last.types) === JSON.stringify(types);
  if (!same) return new RatingChunk(limits, types, true);
  last.rows = 0;
  return last;
}
