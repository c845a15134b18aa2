import { throwIfAborted } from '../../../engine/errors.ts';
import { startPhase } from '../../../engine/events.ts';
import { keyArrays } from '../../../engine/keys/key-column.ts';
import { dataSetName, partitionRef } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { freeAt, giveTo, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import {
  executePlan,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  sourceRequest,
} from '../../../engine/stream/logical-plan.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { runsBySplit } from '../../../engine/stream/operator.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { optimize } from '../../dataflow/optimize.ts';
import { portableOf } from '../../pipeline/operator-chain.ts';
import { groupSplits, readSplits, schemaPartition, type SplitGroup } from '../../pipeline/read-splits.ts';
import { blockLimit } from '../../planner/sizes.ts';
import type { ChunkSummary, ReadValues } from '../../tasks/reading-tasks.ts';
import { runTask } from '../../tasks/run-tasks.ts';
import type { TaskOf } from '../../tasks/tasks.ts';
import { indexChunks, type IndexedRatings, type PairRoom, roomForPairs } from '../ids/number-ids.ts';
import { BadRowTotal, movedBy, reportBadRows, type SelectRatings } from '../rows/select-ratings.ts';
import {
  chunkLimits,
  chunksOf,
  type NumberedChunk,
  RatingChunk,
  ratingRows,
  type RatingTypes,
  requireFewer,
  typesOf,
} from './rating-chunk.ts';

interface ReadOptions {
  /** Most ratings to read; more throw CapacityError. Default: the limit of one block. */
  readonly maximumRows?: number;
  /** Above this number of ratings, chunks are written to files; default: no limit. */
  readonly rowsInMemory?: number;
  /** The expected number of ratings, for progress. */
  readonly totalRows?: number;
  /** See ChunkOptions. */
  readonly splitBytes?: number;
}

/**
 * Reads the ratings of a plan that ends in SelectRatings, and numbers their users and items. Throws DataError
 * for an empty input.
 */
export async function readRatings(
  plan: LogicalPlan,
  { maximumRows = blockLimit.ratings, rowsInMemory = Infinity, totalRows, splitBytes }: ReadOptions,
  ctx: ExecutionContext,
): Promise<IndexedRatings> {
  const started = performance.now();
  const phase = startPhase(ctx.events, 'read', 'ratings', totalRows);
  let rows = 0;
  const onRows = (read: number) => {
    if (read > rows) phase.progress(read);
    rows = read;
  };
  const keeper = new ChunkKeeper(rowsInMemory, ctx);
  const roomRows = Math.min(blockLimit.ratings, rowsInMemory);
  const options = { maximumRows, roomRows, splitBytes, onRows };
  const { numbered, types, room } = await readChunks(plan, options, ctx, (chunk) => keeper.keep(chunk));
  ctx.metrics.addStage('read', started, rows);
  using _ = ctx.metrics.begin('number');
  const indexed = await indexChunks(numbered, types, keeper.spilled, ctx, room);
  phase.end(rows);
  return indexed;
}

/**
 * Keeps chunks of numbered ratings in memory up to a number of rows. With more rows, it moves all chunks to
 * files, and later ones as they arrive.
 */
class ChunkKeeper {
  readonly #most: number;
  readonly #ctx: ExecutionContext;
  readonly #inMemory: NumberedChunk[] = [];
  #rows = 0;

  constructor(most: number, ctx: ExecutionContext) {
    [this.#most, this.#ctx] = [most, ctx];
  }

  /** True once chunks are written to files. */
  get spilled(): boolean {
    return this.#rows > this.#most;
  }

  /** Accepts a chunk whose partitions are not in use. Resolves when it is stored. */
  async keep(chunk: NumberedChunk): Promise<void> {
    const before = this.spilled;
    this.#rows += chunk.rows;
    this.#inMemory.push(chunk);
    if (!this.spilled) return;
    const text =
      'the ratings do not fit into the memory budget while they are loaded: they go by way of files';
    if (!before) this.#ctx.events({ type: 'note', text });
    const steps = new StepList({});
    for (const { codes, values } of this.#inMemory.splice(0))
      steps.spill('spill', hostDevice(this.#ctx.executor).info.place, [codes, values]);
    await runSteps(steps.steps, this.#ctx);
  }
}

interface ChunkOptions {
  /** Stored bytes of a split; default: SPLIT_BYTES. */
  readonly splitBytes?: number | undefined;
  /** Most ratings to read; more throw CapacityError. */
  readonly maximumRows: number;
  /**
   * If the number of ratings is known and at most this, they are read into one allocation (see PairRoom).
   * Default 0.
   */
  readonly roomRows?: number;
  /** Called with the number of rows so far, after each batch of a single stream. */
  readonly onRows?: (rows: number) => void;
}

/** Chunks of ratings being read, in the order of rows. */
interface ChunkReading {
  readonly types: RatingTypes;
  /** The chunks' shared memory, if they have one. */
  readonly room?: PairRoom | undefined;
  readonly chunks: AsyncIterable<readonly NumberedChunk[]>;
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
): Promise<Omit<ChunkReading, 'chunks'> & { readonly numbered: readonly NumberedChunk[] }> {
  using _ = ctx.metrics.begin('read');
  const onRows = (rows: number) => {
    requireFewer(rows, options.maximumRows);
    options.onRows?.(rows);
  };
  const ready = await optimize(plan, {}, ctx.signal);
  const { chunks, ...reading } =
    (await splitChunks(ready, options, ctx)) ?? (await streamChunks(ready, onRows, ctx));
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
  return { ...reading, numbered };
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
  { splitBytes = SPLIT_BYTES, maximumRows, roomRows }: ChunkOptions,
  ctx: ExecutionContext,
): Promise<ChunkReading | undefined> {
  const [source, all] = [rootSource(plan), operatorsOf(plan)];
  if (source.splits === undefined || !all.every(runsBySplit)) return undefined;
  const { columns, needs } = sourceRequest(plan);
  const found = await source.splits(ctx, columns, needs, splitBytes);
  if (found === undefined || found.splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes)
    return undefined;
  const operators = portableOf(all);
  const types = typesOf(all.reduce((own, operator) => operator.outputSchema(own), found.schema));
  const groups = groupSplits(found.splits, splitBytes);
  const name = dataSetName('ratings');
  const schema = partitionRef(`${name}/schema`);
  const { place } = hostDevice(ctx.executor).info;
  await giveTo(ctx, place, [[schema, schemaPartition(found.schema)]]);
  // Further operators may remove rows, and then the memory for all would be too large.
  const isWhole = operators.length === 1 && !types.timestamps;
  const places = isWhole ? placesOf(groups, Math.min(roomRows ?? 0, maximumRows)) : undefined;
  const room = places && (await roomForPairs(places.rows, partitionRef(`${name}/room`), ctx));
  const takesFaults = needs?.takesFaults ?? false;
  let started = 0;
  const read = async (splits: SplitGroup, tasks: ExecutionContext): Promise<ReadGroup> => {
    const own = `${name}/${started++}`;
    const refs = Array.from({ length: chunksOf(splits) }, (_, chunk) => refsOf(own, chunk));
    const outputs = refs.flatMap((chunk, c) =>
      Object.entries(chunk).map(([part, ref]) => [`${part}.${c}`, ref]),
    );
    const ofRoom = places?.of.get(splits);
    const task: TaskOf<'read-ratings'> = {
      kernel: 'read-ratings',
      inputs: { schema },
      outputs: { ...Object.fromEntries(outputs), ...(room && { room: room.ref }) },
      params: { splits, operators, takesFaults, maximumRows, ...(ofRoom && { room: ofRoom }) },
    };
    const { values } = await runTask(tasks, READ_RATINGS, place, task);
    return { ...values, numbered: values.chunks.map((chunk, c) => numberedChunk(refs[c], chunk)) };
  };
  const drop = ({ numbered }: ReadGroup) => {
    const refs = numbered.flatMap(({ codes, values, users, items }) => [
      codes,
      values,
      users.keys,
      items.keys,
    ]);
    return freeAt(ctx, READ_RATINGS, place, refs);
  };
  const chunks = async function* () {
    const bad = new BadRowTotal();
    const atOnce = groupsAtOnce(groups, roomRows ?? Infinity, ctx);
    for await (const group of readSplits<ReadGroup>({ groups, atOnce, read, drop }, ctx)) {
      bad.add(movedBy(group.read.bad, group.before));
      yield group.read.numbered;
    }
    found.whenRead?.();
    reportBadRows(bad.found, (all.at(-1) as SelectRatings).badRows, ctx);
  };
  return { types, room, chunks: chunks() };
}

/** The chunks of a group of splits. */
type ReadGroup = ReadValues & { readonly numbered: readonly NumberedChunk[] };

/** The partitions of a chunk. */
function refsOf(name: string, chunk: number) {
  const ref = (part: string) => partitionRef(`${name}/${part}`, chunk);
  return { codes: ref('codes'), values: ref('values'), users: ref('users'), items: ref('items') };
}

function numberedChunk(refs: ReturnType<typeof refsOf>, { rows, users, items }: ChunkSummary): NumberedChunk {
  const { codes, values } = refs;
  return {
    rows,
    codes,
    values,
    users: { keys: refs.users, summary: users },
    items: { keys: refs.items, summary: items },
  };
}

/**
 * The range of rows of each group of splits among all rows. Undefined if there are more than `most`, or their
 * number is not known.
 */
function placesOf(groups: readonly SplitGroup[], most: number) {
  let rows = 0;
  const of = new Map<SplitGroup, { readonly from: number; readonly to: number }>();
  for (const group of groups) {
    const own = group.reduce((sum, split) => sum + (split.rows ?? Number.NaN), 0);
    of.set(group, { from: rows, to: rows + own });
    rows += own;
  }
  return rows <= most ? { rows, of } : undefined;
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

const NUMBER_IDS = 'index-ids';

/**
 * Reads the ratings of a plan that ends in SelectRatings in the calling thread. While it fills a chunk of
 * about a million rows, tasks number the ids of the chunk before.
 */
async function streamChunks(
  plan: LogicalPlan,
  onRows: (rows: number) => void,
  ctx: ExecutionContext,
): Promise<ChunkReading> {
  const input = await executePlan(plan, ctx);
  const types = typesOf(input.schema);
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const name = dataSetName('ratings');
  // Chunks whose ids were numbered; the memory of these ids is reused.
  const recycled: RatingChunk[] = [];
  let partition = 0;
  const number = async (chunk: RatingChunk): Promise<readonly NumberedChunk[]> => {
    const { rows } = chunk;
    const refs = refsOf(name, partition);
    const ids = partitionRef(`${name}/ids`, partition++);
    const { users, items } = chunk.ids();
    const columns = { ...keyArrays(users, 'user'), ...keyArrays(items, 'item') };
    await giveTo(ctx, place, [[refs.values, chunk.values()]]);
    const task: TaskOf<'number-keys'> = {
      kernel: 'number-keys',
      inputs: { ids },
      outputs: { codes: refs.codes, users: refs.users, items: refs.items },
      params: { rows },
    };
    const given = [[ids, { layout: 'key-pairs', rows, columns }]] as const;
    const { values } = await runTask(ctx, NUMBER_IDS, place, task, { given });
    recycled.push(chunk);
    return [numberedChunk(refs, values)];
  };
  const chunks = mapOrdered(filled(input, types, recycled, onRows), parallelism + 1, number);
  return { types, chunks };
}

/** Fills chunks with the rows of a stream. */
async function* filled(
  input: BatchStream,
  types: RatingTypes,
  recycled: RatingChunk[],
  onRows: (rows: number) => void,
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
    onRows(rows);
  }
  if (chunk.rows > 0) yield chunk;
}
