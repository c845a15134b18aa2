import { DataError } from '../../../engine/errors.ts';
import { keyCount, keyText } from '../../../engine/keys/key-column.ts';
import {
  dataSetName,
  type PartitionRef,
  partitionRef,
  sharedArray,
  sharedCopy,
  type Partition,
} from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo, runSteps, type Given } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { Task } from '../../../engine/task.ts';
import { addSliced, outputsOf, valuesOfStage, TaskRun } from '../../tasks/run-tasks.ts';
import {
  contracts,
  type DuplicatePolicy,
  type TaskOf,
  type ParamsOf,
  type ValuesOf,
} from '../../tasks/tasks.ts';
import type { IndexedRatings, PairRoom } from '../ids/number-ids.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../ratings.ts';
import type { CodedChunk } from '../reading/rating-chunk.ts';
import { balancedRanges, taskCount, evenRanges } from '../row-ranges.ts';

interface Rows {
  /**
   * Side whose codes in the chunks become rows. If users and items are swapped, `users` means the codes of
   * items.
   */
  readonly by: 'users' | 'items';
  /** Position of the first row among all. The chunks and `userCounts` number the rows from 0. */
  readonly firstRow: number;
}

/** Sorts the ratings of all users, or of some, by user. Frees the chunks. */
export async function sortRows(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  { by, firstRow }: Rows,
  ctx: ExecutionContext,
): Promise<CombinedRatings> {
  const name = dataSetName('blocks');
  const ref = (part: string) => partitionRef(`${name}/${part}`);
  const rowData =
    duplicates === 'last' ? await roomForRowData(indexed.rows, ref('row-data'), ctx) : undefined;
  const shape = {
    lengths: indexed.userCounts,
    columns: keyCount(indexed.items),
    order: rowData ? 'by-column' : 'by-value',
    numbered: rowData !== undefined,
  } as const;
  const sorted = await sortChunks(indexed.chunks, by, shape, rowData, ref('sorted'), ctx);
  return combineDuplicates(sorted, duplicates, firstRow, rowData, ref('by-user'), ctx);
}

/**
 * Allocates the ratings and timestamps of all rows, which the policy `last` needs to find the latest rating;
 * the copy tasks fill them.
 */
async function roomForRowData(rows: number, ref: PartitionRef, ctx: ExecutionContext): Promise<PartitionRef> {
  const columns = { ratings: sharedArray(Float32Array, rows), timestamps: sharedArray(Float64Array, rows) };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, { layout: 'row-data', rows, columns }]]);
  return ref;
}

/** Number of ratings of each column, minus the ratings that a policy for duplicates removed. */
export function lengthsWithout(counts: Int32Array, removed: readonly Uint32Array[]): Int32Array {
  const lengths = counts.slice();
  for (const columns of removed) for (const column of columns) lengths[column]--;
  return lengths;
}

const COMBINE = 'combine-duplicates';

/**
 * The number of ratings that repeat the (user, item) pair of another, and the row and column of the first
 * such pair.
 */
export interface RepeatedPairs {
  readonly extra: number;
  readonly row: number;
  readonly column: number;
}

/** A block after repeated pairs were combined by the policy, and the ratings that this removed. */
interface CombinedRatings {
  readonly block: RatingBlock;
  readonly repeated: RepeatedPairs;
  /** Columns of the removed ratings. */
  readonly removed: readonly Uint32Array[];
}

/** Throws DataError if ratings repeat a pair. */
export function requireOnce(
  { extra, row, column }: RepeatedPairs,
  ids: Pick<IndexedRatings, 'users' | 'items' | 'swapped'>,
): void {
  if (extra === 0) return;
  const [first, second] = [keyText(ids.users, row), keyText(ids.items, column)];
  const pair = ids.swapped ? `user ${second}, item ${first}` : `user ${first}, item ${second}`;
  throw new DataError(
    `${extra.toLocaleString('en')} ratings repeat an earlier (user, item) pair; the first pair: ${pair}`,
    { phase: 'read', advice: "Choose a policy for them, such as onDuplicates: 'keep', or last, mean or sum" },
  );
}

/**
 * Combines repeated (user, item) pairs of sorted ratings by the policy. Returns the block unchanged if there
 * are none; for `keep`, since sort-bands has already ordered them; and for `error`, since the caller counts
 * them in all parts and then throws. `rowData`: ratings and timestamps of all rows, for the policy `last`,
 * whose block contains row numbers instead of ratings. `firstRow`: position of the block's first row among
 * all.
 */
async function combineDuplicates(
  { block, repeated: { extra, row, column } }: SortedRows,
  policy: DuplicatePolicy,
  firstRow: number,
  rowData: PartitionRef | undefined,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<CombinedRatings> {
  const repeated: RepeatedPairs = { extra, row: firstRow + row, column };
  if (policy === 'keep' || policy === 'error' || (extra === 0 && rowData === undefined))
    return { block, repeated, removed: [] };

  const ranges = balancedRanges(block.offsets, taskCount(block.ratings));
  const finding = new TaskRun(ctx, COMBINE);
  const tasks = ranges.map((range, i): TaskOf<'find-duplicates'> => ({
    kernel: 'find-duplicates',
    inputs: { block: block.ref },
    outputs: { lengths: finding.ref('lengths', i), repeated: finding.ref('repeated', i) },
    params: { ...range },
  }));
  const handed = await outputsOf(finding, tasks);
  const lengths = new Int32Array(block.rows);
  ranges.forEach(({ from }, i) => lengths.set(handed[2 * i].columns.lengths as Int32Array, from));
  const removed = ranges.map((_, i) => handed[2 * i + 1].columns.columns as Uint32Array);

  const combined = emptyBlock(lengths);
  const combining = new TaskRun(ctx, COMBINE);
  await giveTo(ctx, combining.at, [[ref, combined]]);
  const inputs = { block: block.ref, ...(rowData ? { rowData } : {}) };
  combining.sliced(
    { kernel: 'combine-duplicates', inputs, outputs: { combined: ref }, params: { policy } },
    ranges,
  );
  for (const read of Object.values(inputs)) combining.free(read);
  await combining.end();
  return { block: blockOf(ref, combined), repeated, removed };
}

const STAGE = 'rating-blocks';

/**
 * Number of ratings of a band, a range of adjacent rows that is sorted at once. Two copies of 8 bytes for
 * each rating fit into the cache of one core.
 */
const BAND_RATINGS = 1 << 16;
const MAXIMUM_BANDS = 1024;

/**
 * Ratings that one task takes from the input (a group): few enough to free its memory early, and enough that
 * the cost of sending a task is small.
 */
export const GROUP_RATINGS = 1 << 20;

/** A row is numbered within its band in this number of bits, so a band has at most 2^ROW_BITS rows. */
const ROW_BITS = 16;

/** Partitions and parameters that all tasks of one sort have in common. */
interface Sorting {
  readonly bands: PartitionRef;
  readonly bandCount: number;
  readonly rowBits: number;
  readonly columnBits: number;
  readonly block: PartitionRef;
}

interface ScatterTasks<Group> {
  /**
   * The task that counts the ratings of some groups by band; `counts` receives the numbers of one group after
   * the other.
   */
  count(groups: readonly Group[], counts: PartitionRef, sorting: Sorting): Task;
  scatter(group: Group, cursors: PartitionRef, sorting: Sorting): Task;
  /** Partitions that may be freed once the group's ratings are copied to the bands. */
  scattered?(group: Group): readonly PartitionRef[];
}

interface RowsShape {
  /** Number of ratings of each row. */
  readonly lengths: Int32Array;
  readonly columns: number;
  readonly order: ParamsOf<'sort-bands'>['order'];
  /** True if values are row numbers instead of ratings (policy `last` for duplicates). */
  readonly numbered?: boolean;
  /** Memory for the block. */
  readonly room?: PairRoom['columns'];
}

/** A sorted block, and the repeated (user, item) pairs that were found while sorting. */
interface SortedRows {
  readonly block: RatingBlock;
  readonly repeated: ValuesOf<'sort-bands'>;
}

/**
 * Sorts ratings into compressed sparse rows by bands, which are ranges of adjacent rows that fit the cache
 * (see operators/tasks/data-tasks.ts). First the ratings of each group of input rows are counted by band. The
 * counts give each group its positions in every band. Then each group's ratings are copied to these
 * positions, and last each band is sorted by itself.
 */
async function sortIntoRows<Group>(
  groups: readonly Group[],
  shape: RowsShape,
  ref: PartitionRef,
  ctx: ExecutionContext,
  tasks: ScatterTasks<Group>,
): Promise<SortedRows> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const room = shape.room && { indices: shape.room.users, values: shape.room.values };
  const block = emptyBlock(shape.lengths, shape.numbered ? 'uint32' : 'float32', room);
  const offsets = block.columns.offsets as Int32Array;
  const columnBits = 32 - Math.clz32(Math.max(0, shape.columns - 1));
  const rowBits = Math.min(ROW_BITS, 32 - columnBits);
  const { bands, firstRow } = rowBands(offsets, rowBits);
  const starts = firstRow.map((row) => offsets[row]);
  const bandCount = firstRow.length - 1;
  const refOf = (part: string, partition = 0) => partitionRef(`${ref.name}/${part}`, partition);
  const sorting: Sorting = { bands: refOf('bands'), bandCount, rowBits, columnBits, block: ref };

  // Counting is fast, so one task counts several groups.
  const ranges = evenRanges(groups.length, 2 * parallelism);
  await giveTo(ctx, place, [[sorting.bands, bands]]);
  const counting = ranges.map(({ from, to }, c) =>
    tasks.count(groups.slice(from, to), refOf('counts', c), sorting),
  );
  const handed = await outputsOf(new TaskRun(ctx, STAGE), counting as TaskOf<'count-pairs'>[]);

  // The positions in the bands to which a group's ratings are copied: after the ratings of earlier groups.
  const given: Given[] = [[ref, block, place]];
  const next = starts.slice(0, bandCount);
  ranges.forEach(({ from, to }, c) => {
    const counted = handed[c].columns.counts as Int32Array;
    for (let g = from; g < to; g++) {
      const columns = { cursors: sharedCopy(next) };
      given.push([refOf('cursors', g), { layout: 'cursors', rows: bandCount, columns }, place]);
      for (let band = 0; band < bandCount; band++) next[band] += counted[(g - from) * bandCount + band];
    }
  });

  const steps = new StepList(contracts);
  groups.forEach((group, g) => {
    const task = tasks.scatter(group, refOf('cursors', g), sorting);
    const own = Object.fromEntries(Object.keys(task.outputs).map((name) => [name, g]));
    steps.task(STAGE, place, task, { bands: own });
  });
  // Each free runs as soon as its group has been copied. They are added after all copy tasks, since tasks
  // that are added after a free wait for it.
  groups.forEach((group, g) =>
    steps.free(STAGE, place, [...(tasks.scattered?.(group) ?? []), refOf('cursors', g)]),
  );
  const sort = {
    kernel: 'sort-bands',
    inputs: { bands: sorting.bands },
    outputs: { block: ref },
    params: { columnBits, order: shape.order },
  } as const;
  addSliced(steps, STAGE, place, sort, balancedRanges(starts, 4 * parallelism));
  steps.free(STAGE, place, [sorting.bands]);
  const found = valuesOfStage(await runSteps(steps.steps, ctx, { given }), STAGE, sort.kernel);
  const { row, column } = found.find(({ extra }) => extra > 0) ?? { row: -1, column: -1 };
  return {
    block: blockOf(ref, block),
    repeated: { extra: found.reduce((sum, { extra }) => sum + extra, 0), row, column },
  };
}

/**
 * Cuts rows into at most MAXIMUM_BANDS bands of about BAND_RATINGS ratings and at most 2^rowBits rows. A long
 * row is a band of its own.
 */
function rowBands(offsets: Int32Array, rowBits: number): { bands: Partition; firstRow: Int32Array } {
  const [rows, mostRows] = [offsets.length - 1, 2 ** rowBits];
  const wanted = Math.max(1, Math.min(MAXIMUM_BANDS, Math.ceil(offsets[rows] / BAND_RATINGS)));
  const ranges = balancedRanges(offsets, wanted).flatMap(({ from, to }): RowRange[] =>
    to - from <= mostRows
      ? [{ from, to }]
      : evenRanges(to - from, Math.ceil((to - from) / mostRows)).map((range) => ({
          from: from + range.from,
          to: from + range.to,
        })),
  );
  const firstRow = sharedCopy(Int32Array.from([...ranges.map((range) => range.from), rows]));
  const placeOf = sharedArray(Uint32Array, rows);
  ranges.forEach(({ from, to }, band) => {
    for (let row = from; row < to; row++) placeOf[row] = band * mostRows + row - from;
  });
  return { bands: { layout: 'row-bands', rows, columns: { placeOf, firstRow } }, firstRow };
}

/**
 * For the policy `last`: a partition with rating and timestamp of every row. Rows are numbered from 0 over
 * all chunks.
 */
type RowData = PartitionRef;

/** Sorts the ratings of chunks into compressed rows by user or by item, and frees the chunks. */
export function sortChunks(
  chunks: readonly CodedChunk[],
  by: 'users' | 'items',
  shape: RowsShape,
  rowData: RowData | undefined,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<SortedRows> {
  return sortIntoRows(groupsOf(chunks), shape, ref, ctx, {
    count: (groups, counts, { bands, bandCount, rowBits }) => ({
      kernel: 'count-pairs',
      inputs: {
        bands,
        ...inputsOf(
          groups.flatMap(({ chunks }) => chunks),
          by,
          ['codes', 'rowMap'],
        ),
      },
      outputs: { counts },
      params: { groups: groups.map(({ chunks }) => chunks.length), bands: bandCount, by, rowBits },
    }),
    scatter: (group, cursors, { bands, block, rowBits, columnBits }) => ({
      kernel: 'scatter-pairs',
      inputs: { bands, cursors, ...inputsOf(group.chunks, by, ['codes', 'values', 'rowMap', 'columnMap']) },
      outputs: { block, ...(rowData ? { rowData } : {}) },
      params: {
        chunks: group.chunks.length,
        by,
        rowBits,
        columnBits,
        ...(rowData ? { firstRow: group.firstRow } : {}),
      },
    }),
    scattered: (group) => group.chunks.flatMap(partitionsOf),
  });
}

/** All partitions of a chunk. */
export function partitionsOf({ codes, values, userMap, itemMap }: CodedChunk): PartitionRef[] {
  return [codes, values, userMap, itemMap].filter((part) => part !== undefined);
}

type InputName = 'codes' | 'values' | 'rowMap' | 'columnMap';

/** The partitions of chunks under the tasks' names: codes.0, codes.1, ... */
export function inputsOf(
  chunks: readonly CodedChunk[],
  by: 'users' | 'items',
  names: readonly InputName[],
): Record<string, PartitionRef> {
  const inputs: Record<string, PartitionRef> = {};
  chunks.forEach(({ codes, values, userMap, itemMap }, i) => {
    const [rowMap, columnMap] = by === 'users' ? [userMap, itemMap] : [itemMap, userMap];
    const parts = { codes, values, rowMap, columnMap };
    for (const name of names) {
      const part = parts[name];
      if (part) inputs[`${name}.${i}`] = part;
    }
  });
  return inputs;
}

/** Adjacent chunks that one task copies to their bands. */
interface ChunkGroup {
  readonly chunks: readonly CodedChunk[];
  /** Number of the group's first row among all rows. */
  readonly firstRow: number;
}

/** Groups adjacent chunks, with about GROUP_RATINGS ratings each. */
function groupsOf(chunks: readonly CodedChunk[]): ChunkGroup[] {
  const groups: { chunks: CodedChunk[]; firstRow: number; rows: number }[] = [];
  let firstRow = 0;
  for (const chunk of chunks) {
    const last = groups.at(-1);
    if (last !== undefined && last.rows + chunk.rows <= GROUP_RATINGS) {
      last.chunks.push(chunk);
      last.rows += chunk.rows;
    } else {
      groups.push({ chunks: [chunk], firstRow, rows: chunk.rows });
    }
    firstRow += chunk.rows;
  }
  return groups;
}

/**
 * Transposes a block: its columns become rows, with ascending indices. `lengths`: number of ratings of each
 * column. `room`: memory for the result.
 */
export async function transposeBlock(
  block: RatingBlock,
  lengths: Int32Array,
  ctx: ExecutionContext,
  room?: PairRoom['columns'],
): Promise<RatingBlock> {
  const groups = balancedRanges(block.offsets, 4 * hostDevice(ctx.executor).info.parallelism);
  const ref: PartitionRef = { ...block.ref, name: `${block.ref.name}/transposed` };
  const sorted = await sortIntoRows(groups, { lengths, columns: block.rows, order: 'kept', room }, ref, ctx, {
    count: (ranges, counts, { bands, bandCount, rowBits }) => ({
      kernel: 'count-columns',
      inputs: { block: block.ref, bands },
      outputs: { counts },
      params: {
        starts: [...ranges.map(({ from }) => from), ranges[ranges.length - 1].to],
        bands: bandCount,
        rowBits,
      },
    }),
    scatter: (range, cursors, { bands, block: transposed, rowBits, columnBits }) => ({
      kernel: 'scatter-columns',
      inputs: { block: block.ref, bands, cursors },
      outputs: { transposed },
      params: { ...range, rowBits, columnBits },
    }),
  });
  return sorted.block;
}
