import { throwIfAborted } from '../../../engine/errors.ts';
import { keyArrays } from '../../../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef, partitionRef } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import {
  executePlan,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  sourceRequest,
} from '../../../engine/stream/logical-plan.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { type PortableOperator, runsBySplit } from '../../../engine/stream/operator.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { optimize } from '../../dataflow/optimize.ts';
import { portableOf } from '../../pipeline/operator-chain.ts';
import { groupSplits, readSplits, schemaPartition, type SplitGroup } from '../../pipeline/read-splits.ts';
import type { ReadValues } from '../../tasks/reading-tasks.ts';
import { contracts, type TaskOf, type ValuesOf } from '../../tasks/tasks.ts';
import { BadRowTotal, movedBy, reportBadRows } from '../rows/bad-rows.ts';
import type { SelectRatings } from '../rows/select-ratings.ts';
import { type PairRoom, roomForPairs } from '../sorting/pair-room.ts';
import {
  chunkLimits,
  type ChunkOptions,
  type ChunkReading,
  chunksOf,
  type NumberedChunk,
  RatingChunk,
  ratingRows,
  type RatingTypes,
  requireFewer,
  typesOf,
} from './rating-chunk.ts';

/** All ratings, in the order of rows. */
interface ReadChunks {
  readonly numbered: readonly NumberedChunk[];
  readonly types: RatingTypes;
  /** The chunks' shared memory, if they have one. */
  readonly room?: PairRoom;
}

/**
 * Reads the ratings of a plan that ends in SelectRatings as chunks; the ids of each chunk are numbered
 * separately. Tasks read the source's splits if it has some, else the calling thread reads. `keep` is called
 * with each chunk as it arrives, and may move it, for example to a file.
 */
export async function readChunks(
  plan: LogicalPlan,
  options: ChunkOptions,
  ctx: ExecutionContext,
  keep: (chunk: NumberedChunk) => Promise<void> = async () => {},
): Promise<ReadChunks> {
  using _ = ctx.metrics.begin('read');
  const onRows = (rows: number) => {
    requireFewer(rows, options.maximumRows);
    options.onRows?.(rows);
  };
  const asked = { ...options, onRows };
  const ready = await optimize(plan, {}, ctx.signal);
  const { chunks, types, room } =
    (await splitChunks(ready, asked, ctx)) ?? (await streamChunks(ready, asked, ctx));
  const numbered: NumberedChunk[] = [];
  let rows = 0;
  for await (const some of chunks) {
    for (const chunk of some) {
      numbered.push(chunk);
      rows += chunk.rows;
      await keep(chunk);
    }
    onRows(rows);
  }
  throwIfAborted(ctx.signal, 'read');
  return { numbered, types, room };
}

const READ_RATINGS = 'read-ratings';

/**
 * Tasks read splits of about this number of bytes. A smaller source is read by the calling thread: starting
 * other threads takes longer than reading it.
 */
const SPLIT_BYTES = 4 << 20;

/**
 * Reads the ratings of a plan that ends in SelectRatings by tasks, one or more for the splits of its source.
 * Undefined, with nothing read, if the calling thread must read them as one stream: the source has no splits
 * or is small, or an operator cannot run in another thread.
 */
async function splitChunks(
  plan: LogicalPlan,
  options: ChunkOptions,
  ctx: ExecutionContext,
): Promise<ChunkReading | undefined> {
  const { splitBytes = SPLIT_BYTES } = options;
  const [source, all] = [rootSource(plan), operatorsOf(plan)];
  if (source.splits === undefined || !all.every(runsBySplit)) return undefined;
  const { columns, needs } = sourceRequest(plan);
  const found = await source.splits(ctx, columns, needs, splitBytes);
  if (found === undefined || found.splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes)
    return undefined;
  const { schema } = found;
  const operators = portableOf(all);
  const types = typesOf(all.reduce((own, operator) => operator.outputSchema(own), schema));
  const groups = groupSplits(found.splits, splitBytes);
  const name = dataSetName('ratings');
  const columnsRef = partitionRef(`${name}/schema`);
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[columnsRef, schemaPartition(schema)]]);
  const room = await makeRoom({ groups, operators, types, name }, options, ctx);
  const work: SplitWork = {
    name,
    schema: columnsRef,
    groups,
    operators,
    selection: all.at(-1) as SelectRatings,
    takesFaults: needs?.takesFaults ?? false,
    maximumRows: options.maximumRows,
    room,
    whenRead: () => found.whenRead?.(),
  };
  return { types, room: room?.memory, chunks: chunksOfSplits(work, options, ctx) };
}

interface SplitWork {
  readonly name: string;
  /** Schema of the splits. */
  readonly schema: PartitionRef;
  readonly groups: readonly SplitGroup[];
  readonly operators: readonly PortableOperator[];
  readonly selection: SelectRatings;
  readonly takesFaults: boolean;
  readonly maximumRows: number;
  readonly room: Room | undefined;
  /** See SourceSplits. */
  readonly whenRead: () => void;
}

/** Memory for all rows, and the range of rows of each group of splits in it. */
interface Room {
  readonly memory: PairRoom;
  readonly places: ReadonlyMap<SplitGroup, { readonly from: number; readonly to: number }>;
}

/** Allocates memory for all rows, if every row is a rating and their number is known. */
async function makeRoom(
  {
    groups,
    operators,
    types,
    name,
  }: Pick<SplitWork, 'groups' | 'operators' | 'name'> & { types: RatingTypes },
  { roomRows = 0, maximumRows }: ChunkOptions,
  ctx: ExecutionContext,
): Promise<Room | undefined> {
  let rows = 0;
  const places = new Map<SplitGroup, { readonly from: number; readonly to: number }>();
  for (const group of groups) {
    const own = group.reduce((sum, split) => sum + (split.rows ?? Number.NaN), 0);
    places.set(group, { from: rows, to: rows + own });
    rows += own;
  }
  // Further operators may remove rows, and then the memory would be too large. If a number of rows is not
  // known, the sum is NaN, and the negated comparison is true.
  if (operators.length > 1 || types.timestamps || !(rows <= Math.min(roomRows, maximumRows)))
    return undefined;
  const ref = partitionRef(`${name}/room`);
  return { memory: await roomForPairs(rows, ref, ctx), places };
}

/**
 * Number of groups of splits to read concurrently. At most twice the threads, and fewer if memory has room
 * for fewer rows: a group's chunks stay in memory until the group is read completely.
 */
function groupsAtOnce(groups: readonly SplitGroup[], roomRows: number, ctx: ExecutionContext): number {
  const { parallelism } = hostDevice(ctx.executor).info;
  const rowsOf = (group: SplitGroup) => group.reduce((sum, { rows = 0 }) => sum + rows, 0);
  const largest = groups.reduce((rows, group) => Math.max(rows, rowsOf(group)), 1);
  return Math.max(1, Math.min(2 * parallelism, Math.floor(roomRows / largest)));
}

async function* chunksOfSplits(
  work: SplitWork,
  { roomRows = Number.POSITIVE_INFINITY }: ChunkOptions,
  ctx: ExecutionContext,
): AsyncGenerator<readonly NumberedChunk[]> {
  const bad = new BadRowTotal();
  let started = 0;
  const groups = readSplits(
    {
      groups: work.groups,
      atOnce: groupsAtOnce(work.groups, roomRows, ctx),
      read: (group, tasks) => readGroup(work, group, started++, tasks),
      drop: ({ numbered }) => drop(numbered, ctx),
    },
    ctx,
  );
  for await (const { read, before } of groups) {
    bad.add(movedBy(read.bad, before));
    yield read.numbered;
  }
  work.whenRead();
  reportBadRows(bad.found, work.selection.badRows, ctx);
}

type ReadGroupOfSplits = ReadValues & { readonly numbered: readonly NumberedChunk[] };

const PARTS = ['codes', 'values', 'users', 'items'] as const;

async function readGroup(
  { name, schema, operators, takesFaults, maximumRows, room }: SplitWork,
  splits: SplitGroup,
  number: number,
  ctx: ExecutionContext,
): Promise<ReadGroupOfSplits> {
  const ref = (part: string, partition: number) => partitionRef(`${name}/${number}/${part}`, partition);
  const outputs = Object.fromEntries(
    Array.from({ length: chunksOf(splits) }, (_, chunk) =>
      PARTS.map((part) => [`${part}.${chunk}`, ref(part, chunk)]),
    ).flat(),
  );
  const place = room?.places.get(splits);
  const task: TaskOf<'read-ratings'> = {
    kernel: 'read-ratings',
    inputs: { schema },
    outputs: { ...outputs, ...(room && { room: room.memory.ref }) },
    params: { splits, operators, takesFaults, maximumRows, ...(place && { room: place }) },
  };
  const steps = new StepList(contracts);
  steps.task(READ_RATINGS, hostDevice(ctx.executor).info.place, task);
  const [values] = (await runSteps(steps.steps, ctx)).of(READ_RATINGS) as ReadValues[];
  const numbered = values.chunks.map(({ rows, users, items }, chunk): NumberedChunk => {
    const [codes, ratings, userKeys, itemKeys] = PARTS.map((part) => ref(part, chunk));
    return {
      rows,
      codes,
      values: ratings,
      users: { keys: userKeys, summary: users },
      items: { keys: itemKeys, summary: items },
    };
  });
  return { ...values, numbered };
}

async function drop(numbered: readonly NumberedChunk[], ctx: ExecutionContext): Promise<void> {
  const steps = new StepList(contracts);
  const refs = numbered.flatMap(({ codes, values, users, items }) => [codes, values, users.keys, items.keys]);
  steps.free(READ_RATINGS, hostDevice(ctx.executor).info.place, refs);
  await runSteps(steps.steps, ctx);
}

const NUMBER_IDS = 'index-ids';

/**
 * Reads the ratings of a plan that ends in SelectRatings in the calling thread. While it fills a chunk of
 * about a million rows, tasks number the ids of the chunk before.
 */
async function streamChunks(
  plan: LogicalPlan,
  options: ChunkOptions,
  ctx: ExecutionContext,
): Promise<ChunkReading> {
  const input = await executePlan(plan, ctx);
  const types = typesOf(input.schema);
  return { types, chunks: chunksOfStream(input, types, options, ctx) };
}

async function* chunksOfStream(
  input: BatchStream,
  types: RatingTypes,
  { onRows }: ChunkOptions,
  ctx: ExecutionContext,
): AsyncGenerator<readonly NumberedChunk[]> {
  const name = dataSetName('ratings');
  // Chunks whose ids were numbered; the memory of these ids is reused.
  const recycled: RatingChunk[] = [];
  let partition = 0;
  const number = async (chunk: RatingChunk): Promise<NumberedChunk> => {
    const numbered = await numberChunk(chunk, name, partition++, ctx);
    recycled.push(chunk);
    return numbered;
  };
  const { parallelism } = hostDevice(ctx.executor).info;
  for await (const chunk of mapOrdered(filled(input, types, recycled, onRows), parallelism + 1, number))
    yield [chunk];
}

/** Fills chunks with the rows of a stream. */
async function* filled(
  input: BatchStream,
  types: RatingTypes,
  recycled: RatingChunk[],
  onRows: ChunkOptions['onRows'],
): AsyncGenerator<RatingChunk> {
  const newChunk = () => new RatingChunk(chunkLimits([], 0), types, false, { recycled: recycled.pop() });
  let chunk = newChunk();
  let rows = 0;
  for await (const batch of input) {
    const ratings = ratingRows(batch, types);
    for (let from = 0; from < batch.numRows;) {
      from += chunk.append(ratings, from);
      if (!chunk.isFull) continue;
      yield chunk;
      chunk = newChunk();
    }
    rows += batch.numRows;
    onRows?.(rows);
  }
  if (chunk.rows > 0) yield chunk;
}

async function numberChunk(
  chunk: RatingChunk,
  name: string,
  partition: number,
  ctx: ExecutionContext,
): Promise<NumberedChunk> {
  const [ids, codes, values, users, items] = ['ids', 'codes', 'values', 'users', 'items'].map((part) =>
    partitionRef(`${name}/${part}`, partition),
  );
  const { place } = hostDevice(ctx.executor).info;
  const { rows } = chunk;
  const task: TaskOf<'number-keys'> = {
    kernel: 'number-keys',
    inputs: { ids },
    outputs: { codes, users, items },
    params: { rows },
  };
  const steps = new StepList(contracts);
  steps.task(NUMBER_IDS, place, task);
  steps.free(NUMBER_IDS, place, [ids]);
  const given = chunk.ids();
  const columns = { ...keyArrays(given.users, 'user'), ...keyArrays(given.items, 'item') };
  const results = await runSteps(steps.steps, ctx, {
    given: [
      [ids, { layout: 'key-pairs', rows, columns }, place],
      [values, chunk.values(), place],
    ],
  });
  const [summary] = results.of(NUMBER_IDS) as ValuesOf<'number-keys'>[];
  return {
    rows,
    codes,
    values,
    users: { keys: users, summary: summary.users },
    items: { keys: items, summary: summary.items },
  };
}
