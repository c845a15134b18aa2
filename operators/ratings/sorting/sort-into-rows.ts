import { type Partition, type PartitionRef, partitionRef, sharedArray } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { Task } from '../../../engine/task.ts';
import { addSliced, valuesOfStage } from '../../tasks/run-tasks.ts';
import { contracts, type ParamsOf, type ValuesOf } from '../../tasks/tasks.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../rating-block.ts';
import type { CodedChunk } from '../reading/rating-chunk.ts';
import { balancedRanges, evenRanges } from '../row-ranges.ts';
import type { PairRoom } from './pair-room.ts';

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
export interface SortedRows {
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
  const { place } = hostDevice(ctx.executor).info;
  const room = shape.room && { indices: shape.room.users, values: shape.room.values };
  const block = emptyBlock(shape.lengths, shape.numbered ? 'uint32' : 'float32', room);
  const bands = new RowBands(block.columns.offsets as Int32Array, shape.columns, ref);
  const counted = await countBands(groups, bands, ctx, tasks);
  const given: Given[] = [
    [ref, block, place],
    ...cursorsOf(counted, bands).map((cursors, g): Given => [bands.ref('cursors', g), cursors, place]),
  ];
  const sorting = new StepList(contracts);
  scatterGroups(sorting, groups, bands, ctx, tasks);
  sortBands(sorting, bands, shape.order, ctx);
  const found = valuesOfStage(await runSteps(sorting.steps, ctx, { given }), STAGE, 'sort-bands');
  const { row, column } = found.find(({ extra }) => extra > 0) ?? { row: -1, column: -1 };
  return {
    block: blockOf(ref, block),
    repeated: { extra: found.reduce((sum, { extra }) => sum + extra, 0), row, column },
  };
}

/** The division of a block's rows into bands, and the names of the partitions that the sort uses. */
class RowBands {
  readonly partition: Partition;
  readonly count: number;
  readonly sorting: Sorting;
  /** Position of each band's first rating, and the total number. */
  readonly starts: Int32Array;
  readonly #name: string;

  constructor(offsets: Int32Array, columns: number, block: PartitionRef) {
    this.#name = block.name;
    const columnBits = 32 - Math.clz32(Math.max(0, columns - 1));
    const rowBits = Math.min(ROW_BITS, 32 - columnBits);
    const { bands, firstRow } = rowBands(offsets, rowBits);
    this.partition = bands;
    this.count = firstRow.length - 1;
    this.starts = firstRow.map((row) => offsets[row]);
    this.sorting = { bands: this.ref('bands'), bandCount: this.count, rowBits, columnBits, block };
  }

  ref(part: string, partition = 0): PartitionRef {
    return partitionRef(`${this.#name}/${part}`, partition);
  }
}

/** Counts the ratings of each group in each band; the counts of group g start at g * (number of bands). */
async function countBands<Group>(
  groups: readonly Group[],
  bands: RowBands,
  ctx: ExecutionContext,
  tasks: ScatterTasks<Group>,
): Promise<Int32Array[]> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  // Counting is fast, so one task counts several groups.
  const ranges = evenRanges(groups.length, 2 * parallelism);
  const steps = new StepList(contracts);
  const refs = ranges.map((_, c) => bands.ref('counts', c));
  ranges.forEach(({ from, to }, c) => {
    const task = steps.task(STAGE, place, tasks.count(groups.slice(from, to), refs[c], bands.sorting));
    steps.handOut(STAGE, refs[c], place, task);
  });
  steps.free(STAGE, place, refs);
  const given: Given[] = [[bands.sorting.bands, bands.partition, place]];
  const { handed } = await runSteps(steps.steps, ctx, { given });
  return ranges.flatMap(({ from, to }, c) => {
    const counts = handed[c].columns.counts as Int32Array;
    return Array.from({ length: to - from }, (_, g) =>
      counts.subarray(g * bands.count, (g + 1) * bands.count),
    );
  });
}

/**
 * For each group, the position in each band to which its ratings are copied: after the ratings of earlier
 * groups.
 */
function cursorsOf(counted: readonly Int32Array[], { count, starts }: RowBands): Partition[] {
  const next = starts.slice(0, count);
  return counted.map((counts) => {
    const cursors = sharedCopy(next);
    for (let band = 0; band < count; band++) next[band] += counts[band];
    return { layout: 'cursors', rows: count, columns: { cursors } };
  });
}

/** Copies the ratings of each group to the group's positions in the bands, then frees the group. */
function scatterGroups<Group>(
  steps: StepList,
  groups: readonly Group[],
  bands: RowBands,
  ctx: ExecutionContext,
  tasks: ScatterTasks<Group>,
): void {
  const { place } = hostDevice(ctx.executor).info;
  groups.forEach((group, g) => {
    const task = tasks.scatter(group, bands.ref('cursors', g), bands.sorting);
    const own = Object.fromEntries(Object.keys(task.outputs).map((name) => [name, g]));
    steps.task(STAGE, place, task, { bands: own });
  });
  // Each free runs as soon as its group has been copied. They are added after all copy tasks, since tasks
  // that are added after a free wait for it.
  groups.forEach((group, g) =>
    steps.free(STAGE, place, [...(tasks.scattered?.(group) ?? []), bands.ref('cursors', g)]),
  );
}

/** Sorts each band separately. */
function sortBands(
  steps: StepList,
  { starts, sorting }: RowBands,
  order: RowsShape['order'],
  ctx: ExecutionContext,
): void {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const task = {
    kernel: 'sort-bands',
    inputs: { bands: sorting.bands },
    outputs: { block: sorting.block },
    params: { columnBits: sorting.columnBits, order },
  } as const;
  addSliced(steps, STAGE, place, task, balancedRanges(starts, 4 * parallelism));
  steps.free(STAGE, place, [sorting.bands]);
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

function sharedCopy(values: Int32Array): Int32Array {
  const copy = sharedArray(Int32Array, values.length);
  copy.set(values);
  return copy;
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

/** Adjacent chunks that one task copies to their bands (see sort-into-rows.ts). */
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
