import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { Task } from '../../../engine/task.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../rating-block.ts';
import { balancedRanges, evenRanges } from '../row-ranges.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { valuesOfStage } from '../../tasks/task-values.ts';
import { contracts, type ParamsOf, type ValuesOf } from '../../tasks/tasks.ts';
import type { PairRoom } from './pair-room.ts';

const STAGE = 'rating-blocks';

/** Ratings of a band: 8 bytes each, twice, stay within a core's own cache. */
const BAND_RATINGS = 1 << 16;
const MAXIMUM_BANDS = 1024;

/** Ratings of a group: its memory is free soon, and its own work is far more than that of sending it. */
export const GROUP_RATINGS = 1 << 20;

/** Bits of a row's number in its band, at most. */
const ROW_BITS = 16;

/** Partitions and parameters that all tasks name. */
export interface Sorting {
  readonly bands: PartitionRef;
  readonly bandCount: number;
  readonly rowBits: number;
  readonly columnBits: number;
  readonly block: PartitionRef;
}

export interface ScatterTasks<Group> {
  /** `counts`: of each group in turn. */
  count(groups: readonly Group[], counts: PartitionRef, sorting: Sorting): Task;
  scatter(group: Group, cursors: PartitionRef, sorting: Sorting): Task;
  /** Partitions that are freed once the group is scattered. */
  scattered?(group: Group): readonly PartitionRef[];
}

export interface RowsShape {
  /** Ratings of each row. */
  readonly lengths: Int32Array;
  readonly columns: number;
  readonly order: ParamsOf<'sort-bands'>['order'];
  /** Values are row numbers, not ratings. */
  readonly numbered?: boolean;
  /** Memory for the block. */
  readonly room?: PairRoom['columns'];
}

/** A block, and what sort-bands found of ratings beyond the first of their pair. */
export interface SortedRows {
  readonly block: RatingBlock;
  readonly repeated: ValuesOf<'sort-bands'>;
}

/**
 * Sorts ratings into compressed rows by way of bands (see operators/tasks/data-tasks.ts): each group counts
 * its ratings by band, all counts together give each group its places, each group scatters to them, and each
 * band is sorted by itself.
 *
 */
export async function sortIntoRows<Group>(
  groups: readonly Group[],
  shape: RowsShape,
  ref: PartitionRef,
  ctx: ExecutionContext,
  tasks: ScatterTasks<Group>,
): Promise<SortedRows> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const part = (name: string, partition = 0): PartitionRef => ({
    name: `${ref.name}/${name}`,
    partition,
    version: 0,
  });
  const block = emptyBlock(
    shape.lengths,
    shape.numbered ? 'uint32' : 'float32',
    shape.room && { indices: shape.room.users, values: shape.room.values },
  );
  const offsets = block.columns.offsets as Int32Array;
  const columnBits = 32 - Math.clz32(Math.max(0, shape.columns - 1));
  const rowBits = Math.min(ROW_BITS, 32 - columnBits);
  const { bands, firstRow } = rowBands(offsets, rowBits);
  const bandCount = firstRow.length - 1;
  const bandsRef = part('bands');
  const named: Sorting = { bands: bandsRef, bandCount, rowBits, columnBits, block: ref };
  // Counting is quick, so that a task has several groups.
  const counted = evenRanges(groups.length, 2 * parallelism);
  const counting = new StepList(contracts);
  counted.forEach(({ from, to }, c) => {
    const task = counting.task(STAGE, place, tasks.count(groups.slice(from, to), part('counts', c), named));
    counting.handOut(STAGE, part('counts', c), place, task);
  });
  counting.free(
    STAGE,
    place,
    counted.map((_, c) => part('counts', c)),
  );
  const { handed } = await runSteps(counting.steps, ctx, { given: [[bandsRef, bands, place]] });
  const next = firstRow.slice(0, bandCount).map((row) => offsets[row]);
  const given: Given[] = [[ref, block, place]];
  counted.forEach(({ from, to }, c) => {
    const counts = handed[c].columns.counts as Int32Array;
    for (let g = from; g < to; g++) {
      given.push([
        part('cursors', g),
        { layout: 'cursors', rows: bandCount, columns: { cursors: sharedCopy(next) } },
        place,
      ]);
      for (let band = 0; band < bandCount; band++) next[band] += counts[(g - from) * bandCount + band];
    }
  });
  const sorting = new StepList(contracts);
  // Each group fills places of its own.
  groups.forEach((group, g) => {
    const scatter = tasks.scatter(group, part('cursors', g), named);
    sorting.task(STAGE, place, scatter, {
      bands: Object.fromEntries(Object.keys(scatter.outputs).map((name) => [name, g])),
    });
  });
  // Behind all tasks of their kind: a task waits for the frees that stand before it. Each acts as soon as its
  // group is scattered.
  groups.forEach((group, g) =>
    sorting.free(STAGE, place, [...(tasks.scattered?.(group) ?? []), part('cursors', g)]),
  );
  const ranges = balancedRanges(
    firstRow.map((row) => offsets[row]),
    4 * parallelism,
  );
  addSliced(
    sorting,
    STAGE,
    place,
    {
      kernel: 'sort-bands',
      inputs: { bands: bandsRef },
      outputs: { block: ref },
      params: { columnBits, order: shape.order },
    },
    ranges,
  );
  sorting.free(STAGE, place, [bandsRef]);
  const found = valuesOfStage(await runSteps(sorting.steps, ctx, { given }), STAGE, 'sort-bands');
  const { row, column } = found.find(({ extra }) => extra > 0) ?? { row: -1, column: -1 };
  return {
    block: blockOf(ref, block),
    repeated: { extra: found.reduce((sum, { extra }) => sum + extra, 0), row, column },
  };
}

/**
 * Cuts rows into bands of about BAND_RATINGS ratings, at most MAXIMUM_BANDS of them, and of no more than
 * 2^rowBits rows. A long row is a band of its own.
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
