import { hostDevice } from '../engine/devices.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { type Partition, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import type { Task } from '../engine/task.ts';
import { blockOf, emptyBlock, type RatingBlock } from './rating-block.ts';
import { balancedRanges } from './row-ranges.ts';
import type { SortBandsTask } from './tasks.ts';

const STAGE = 'rating-blocks';

/** Ratings of a band: 12 bytes each, twice, stay within a core's own cache. */
const BAND_RATINGS = 1 << 16;
const MAXIMUM_BANDS = 1024;

/** What the tasks of a group are told. */
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
  /** Called once everything is scattered: what it came from may go. */
  release?(): void;
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
 * Sorts ratings into compressed rows by way of bands (see tasks.ts): each group counts its ratings by band, all counts
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
  const device = hostDevice(ctx.executor);
  const part = (name: string, partition = 0): PartitionRef => ({ name: `${ref.name}/${name}`, partition, version: 0 });
  const block = emptyBlock(shape.lengths, shape.numbered ? 'uint32' : 'float32');
  const offsets = block.columns.offsets as Int32Array;
  const ratings = offsets[offsets.length - 1];
  const { bands, firstRow } = rowBands(offsets);
  const bandCount = firstRow.length - 1;
  const [bandsRef, rowsRef] = [part('bands'), part('rows')];
  const places = groups.map((_, g): ScatterPlaces => ({ bands: bandsRef, bandCount, counts: part('counts', g), cursors: part('cursors', g), block: ref, rows: rowsRef }));
  device.put(bandsRef, bands);
  await runStage(ctx, STAGE, device, groups.map((group, g) => tasks.count(group, places[g])));
  const next = firstRow.slice(0, bandCount).map((row) => offsets[row]);
  for (const { counts, cursors } of places) {
    device.put(cursors, { layout: 'cursors', rows: bandCount, columns: { cursors: sharedCopy(next) } });
    const counted = (await device.fetch(counts)).columns.counts as Int32Array;
    for (let band = 0; band < bandCount; band++) next[band] += counted[band];
  }
  device.put(ref, block);
  device.put(rowsRef, { layout: 'row-numbers', rows: ratings, columns: { rows: rowNumbers } });
  await runStage(ctx, STAGE, device, groups.map((group, g) => tasks.scatter(group, places[g])));
  tasks.release?.();
  const bandOffsets = firstRow.map((row) => offsets[row]);
  const sort = balancedRanges(bandOffsets, 4 * device.parallelism).map(
    (range): SortBandsTask => ({
      kernel: 'sort-bands',
      inputs: { bands: bandsRef },
      outputs: { block: ref, rows: rowsRef },
      params: { ...range, columns: shape.columns, ordered: shape.ordered },
    }),
  );
  await runStage(ctx, STAGE, device, sort);
  for (const used of [bandsRef, rowsRef, ...places.flatMap(({ counts, cursors }) => [counts, cursors])]) device.release(used);
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
