import type { TaskScope } from '../../cpu/handler.ts';
import { areFinite, numberColumn } from '../../cpu/tasks/numbering/near-keys.ts';
import { pagedArray, type Partition } from '../../engine/partition.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import { operatorFrom } from '../../operators/pipeline/operator-chain.ts';
import {
  type ChunkLimits,
  chunkLimits,
  type ChunkPlace,
  RatingChunk,
  ratingRows,
  type RatingTypes,
  requireFewer,
  typesOf,
} from '../../operators/ratings/reading/rating-chunk.ts';
import { BadRowCounter, type SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import type { ChunkSummary, ReadParams } from '../../operators/tasks/reading-tasks.ts';
import type { KernelTasks, OutcomeOf } from '../../operators/tasks/tasks.ts';
import { type SplitRows, whileWanted } from './split-rows.ts';

/** The chunk of the thread's previous task. Its contents were copied, so its memory can be reused. */
let lastChunk: WeakRef<RatingChunk> | undefined;

/** See `read-ratings` of KernelTasks. */
export async function readRatingsTask(scope: TaskScope): Promise<OutcomeOf<KernelTasks['read-ratings']>> {
  return whileWanted(scope, (rows) => gather(scope, rows));
}

async function gather(scope: TaskScope, source: SplitRows): Promise<OutcomeOf<KernelTasks['read-ratings']>> {
  const params = scope.params as ReadParams;
  const operators = await Promise.all(params.operators.map(operatorFrom));
  const selection = operators.pop() as SelectRatings;
  let stream = batchStream(source.schema, source.read(params, true));
  for (const operator of operators) stream = operator.execute(stream, source.context);
  const bad = new BadRowCounter();
  const selected = selection.select(stream, bad, (values) => areFinite(scope, values));
  const types = typesOf(selected.schema);
  const partitions: Record<string, Partition> = {};
  const chunks: ChunkSummary[] = [];
  const room =
    scope.hasInput('room') && params.room
      ? new RoomPart(scope.partition('room').columns as unknown as ChunkPlace, params.room)
      : undefined;
  const begin = (): RatingChunk => {
    const limits = chunkLimits(params.splits, chunks.length);
    const place = room?.rest(limits.rows);
    return place
      ? new RatingChunk({ ...limits, rows: place.values.length }, types, true, { place })
      : takeChunk(limits, types);
  };
  const finish = (chunk: RatingChunk): void => {
    const { parts, summary } = finished(chunk, scope);
    for (const [name, part] of Object.entries(parts)) partitions[`${name}.${chunks.length}`] = part;
    chunks.push(summary);
    if (chunk.place) room?.take(chunk.rows);
    keepChunk(chunk);
  };
  let chunk = begin();
  let rows = 0;
  for await (const batch of selected) {
    const ratings = ratingRows(batch, types);
    rows += batch.numRows;
    requireFewer(rows, params.maximumRows);
    for (let from = 0; from < batch.numRows;) {
      from += chunk.append(ratings, from);
      if (!chunk.isFull) continue;
      finish(chunk);
      chunk = begin();
    }
  }
  if (chunk.rows > 0) finish(chunk);
  else keepChunk(chunk);
  return {
    rows,
    partitions,
    spans: source.spans,
    values: { chunks, bad: bad.found, rows: source.rows, end: source.end },
  } as OutcomeOf<KernelTasks['read-ratings']>;
}

/**
 * The result of a full chunk: partitions with the codes of its ids, the ratings and the ids. Codes and
 * ratings are copied, unless the chunk was filled in their final place.
 */
function finished(
  chunk: RatingChunk,
  scope: TaskScope,
): { readonly parts: Readonly<Record<string, Partition>>; readonly summary: ChunkSummary } {
  const { rows, place } = chunk;
  const reused = place !== undefined;
  const codes = place
    ? partOf(place, 0, rows)
    : { users: pagedArray(Uint32Array, rows), items: pagedArray(Uint32Array, rows) };
  const { users, items } = chunk.numbered(codes, (ids, into) => numberColumn(scope, ids, into));
  const { layout, columns } = chunk.values();
  const copied = (numbers: Partition['columns'][string]) => copyOf(numbers as Float32Array | Float64Array);
  const values = reused
    ? columns
    : Object.fromEntries(Object.entries(columns).map(([name, numbers]) => [name, copied(numbers)]));
  return {
    parts: {
      codes: { layout: 'coded-pairs', rows, columns: { users: users.codes, items: items.codes }, reused },
      values: { layout, rows, columns: values, reused },
      users: users.keys,
      items: items.keys,
    },
    summary: { rows, users: users.summary, items: items.summary },
  };
}

/** Copies numbers whose memory is reused for the next chunk. */
function copyOf(numbers: Float32Array | Float64Array): Float32Array | Float64Array {
  const copy =
    numbers instanceof Float32Array
      ? pagedArray(Float32Array, numbers.length)
      : pagedArray(Float64Array, numbers.length);
  copy.set(numbers);
  return copy;
}

function partOf({ users, items, values }: ChunkPlace, from: number, to: number): ChunkPlace {
  return {
    users: users.subarray(from, to),
    items: items.subarray(from, to),
    values: values.subarray(from, to),
  };
}

/** A task's range of the memory that was allocated for all rows. The task's chunks fill it in order. */
class RoomPart {
  readonly #room: ChunkPlace;
  #next: number;
  readonly #end: number;

  constructor(room: ChunkPlace, { from, to }: { readonly from: number; readonly to: number }) {
    [this.#room, this.#next, this.#end] = [room, from, to];
  }

  /** The place for the next chunk, of at most `most` rows; undefined if the part is full. */
  rest(most: number): ChunkPlace | undefined {
    return this.#next < this.#end
      ? partOf(this.#room, this.#next, Math.min(this.#end, this.#next + most))
      : undefined;
  }

  take(rows: number): void {
    this.#next += rows;
  }
}

function keepChunk(chunk: RatingChunk): void {
  if (chunk.place === undefined) lastChunk = new WeakRef(chunk);
}

/**
 * A chunk to fill. The previous task's chunk is reused, unless it has other columns or was
 * garbage-collected.
 */
function takeChunk(limits: ChunkLimits, types: RatingTypes): RatingChunk {
  const last = lastChunk?.deref();
  lastChunk = undefined;
  const same =
    last !== undefined &&
    last.limits.rows === limits.rows &&
    JSON.stringify(last.types) === JSON.stringify(types);
  if (!same) return new RatingChunk(limits, types, true);
  last.rows = 0;
  return last;
}
