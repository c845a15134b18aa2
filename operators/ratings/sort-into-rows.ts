import { hostDevice } from '../../engine/run/devices.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import type { Task } from '../../engine/task.ts';
import { blockOf, emptyBlock, type RatingBlock } from './rating-block.ts';
import { balancedRanges } from './row-ranges.ts';
import { addSliced } from '../tasks/run-tasks.ts';
import { contracts } from '../tasks/tasks.ts';

export const STAGE = 'rating-blocks';

/** Ratings of a band: 12 bytes each, twice, stay within a core's own cache. */
const BAND_RATINGS = 1 << 16;
const MAXIMUM_BANDS = 1024;

/** Partitions that the tasks of a group name. */
export interface ScatterPlaces {
  readonly bands: PartitionRef;
  readonly bandCount: number;
  readonly counts: PartitionRef;
  readonly cursors: PartitionRef;
  readonly block: PartitionRef;
  readonly rows: PartitionRef;
}

export interface ScatterTasks<Group> {
  count(group: Group, places: ScatterPlaces): Task;
  scatter(group: Group, places: ScatterPlaces): Task;
  /** Partitions that are freed once everything is scattered. */
  readonly scattered?: readonly PartitionRef[];
}

export interface RowsShape {
  /** Ratings of each row. */
  readonly lengths: Int32Array;
  readonly columns: number;
  /** The groups give each row's columns in ascending order. */
  readonly ordered: boolean;
  /** Values are row numbers, not ratings. */
  readonly numbered: boolean;
}

/**
 * Sorts ratings into compressed rows by way of bands (see operators/tasks/data-tasks.ts): each group counts its ratings by band, all counts
 * together give each group its places, each group scatters to them, and each band is sorted by itself. `rowNumbers`
 * is scratch of one number a rating.
 */
export async function sortIntoRows<Group>(
  groups: readonly Group[],
  shape: RowsShape,
  rowNumbers: Uint32Array,
  ref: PartitionRef,
  ctx: ExecutionContext,
  tasks: ScatterTasks<Group>,
): Promise<RatingBlock> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const part = (name: string, partition = 0): PartitionRef => ({ name: `${ref.name}/${name}`, partition, version: 0 });
  const block = emptyBlock(shape.lengths, shape.numbered ? 'uint32' : 'float32');
  const offsets = block.columns.offsets as Int32Array;
  const ratings = offsets[offsets.length - 1];
  const { bands, firstRow } = rowBands(offsets);
  const bandCount = firstRow.length - 1;
  const [bandsRef, rowsRef] = [part('bands'), part('rows')];
  const places = groups.map((_, g): ScatterPlaces => ({ bands: bandsRef, bandCount, counts: part('counts', g), cursors: part('cursors', g), block: ref, rows: rowsRef }));
  const counting = new StepList(contracts);
  groups.forEach((group, g) => {
    const counted = counting.task(STAGE, place, tasks.count(group, places[g]));
    counting.handOut(STAGE, places[g].counts, place, counted);
  });
  counting.free(STAGE, place, places.map(({ counts }) => counts));
  const counted = (await runSteps(counting.steps, ctx, { given: [[bandsRef, bands, place]] })).handed;
  const next = firstRow.slice(0, bandCount).map((row) => offsets[row]);
  const given: Given[] = [[ref, block, place], [rowsRef, { layout: 'row-numbers', rows: ratings, columns: { rows: rowNumbers } }, place]];
  for (const [g, { cursors }] of places.entries()) {
    given.push([cursors, { layout: 'cursors', rows: bandCount, columns: { cursors: sharedCopy(next) } }, place]);
    const counts = counted[g].columns.counts as Int32Array;
    for (let band = 0; band < bandCount; band++) next[band] += counts[band];
  }
  const sorting = new StepList(contracts);
  // Each group fills places of its own.
  groups.forEach((group, g) => {
    const scatter = tasks.scatter(group, places[g]);
    sorting.task(STAGE, place, scatter, { bands: Object.fromEntries(Object.keys(scatter.outputs).map((name) => [name, g])) });
  });
  sorting.free(STAGE, place, [...(tasks.scattered ?? []), ...places.map(({ cursors }) => cursors)]);
  const ranges = balancedRanges(firstRow.map((row) => offsets[row]), 4 * parallelism);
  const params = { columns: shape.columns, ordered: shape.ordered };
  addSliced(sorting, STAGE, place, { kernel: 'sort-bands', inputs: { bands: bandsRef }, outputs: { block: ref, rows: rowsRef }, params }, ranges);
  sorting.free(STAGE, place, [bandsRef, rowsRef]);
  await runSteps(sorting.steps, ctx, { given });
  return blockOf(ref, block);
}

/** Cuts rows into bands of about BAND_RATINGS ratings, at most MAXIMUM_BANDS of them. A long row is a band of its own. */
function rowBands(offsets: Int32Array): { bands: Partition; firstRow: Int32Array } {
  const rows = offsets.length - 1;
  const wanted = Math.max(1, Math.min(MAXIMUM_BANDS, Math.ceil(offsets[rows] / BAND_RATINGS)));
  const ranges = balancedRanges(offsets, wanted);
  const firstRow = sharedCopy(Int32Array.from([...ranges.map((range) => range.from), rows]));
  const bandOf = sharedArray(Uint16Array, rows);
  ranges.forEach(({ from, to }, band) => bandOf.fill(band, from, to));
  return { bands: { layout: 'row-bands', rows, columns: { bandOf, firstRow } }, firstRow };
}

function sharedCopy(values: Int32Array): Int32Array {
  const copy = sharedArray(Int32Array, values.length);
  copy.set(values);
  return copy;
}
