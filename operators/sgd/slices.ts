import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import { balancedRanges, evenRanges, taskCount } from '../ratings/row-ranges.ts';
import { measureStages } from '../training/loss.ts';
import type { SgdData } from './data/data.ts';
import type { SgdLayoutData } from './data/layout.ts';
import { BATCH_RATINGS, type SgdSchedule } from './schedules/schedule.ts';
import { TASKS_PER_WORKER } from './round.ts';

/**
 * Row and column ranges of the parts of the factors. `width`: the most columns of a part; all parts of
 * columns (segments) are stored that wide.
 */
export interface SgdCuts {
  readonly rows: readonly RowRange[];
  readonly columns: readonly RowRange[];
  readonly width: number;
}

type RowOffsets = Int32Array | Float64Array;

/**
 * The slices of each stage: for each part, the row ranges of its tasks. `host`: the device that draws the
 * initial factors.
 */
export function sgdSlices(
  { rows, columns, columnOffsets, ratings }: SgdData,
  laid: SgdLayoutData,
  { kind, deviceBlocks, workers }: SgdSchedule,
  cuts: SgdCuts,
  { device, host }: { readonly device: DeviceInfo; readonly host: DeviceInfo },
): Record<string, RowRange[][]> {
  const even = (parts: number) => ({
    rows: cuts.rows.map(({ from, to }) => evenRanges(to - from, parts)),
    columns: cuts.columns.map(() => evenRanges(cuts.width, parts)),
  });
  const copied = even(device.parallelism);
  const shrunk = even(device.wholePasses ? 1 : device.parallelism);
  const started = 4 * host.parallelism;
  const common = {
    'initialize-rows': even(started).rows,
    'initialize-columns': cuts.columns.map(({ from, to }) => evenRanges(to - from, started)),
    'copy-rows': copied.rows,
    'copy-row-sums': copied.rows,
    'copy-columns': copied.columns,
    'copy-column-sums': copied.columns,
    'shrink-rows': shrunk.rows,
  };
  if (deviceBlocks) return common;
  const pass = (offsets: RowOffsets) =>
    balancedRanges(offsets, device.wholePasses ? 1 : taskCount(offsets[offsets.length - 1]));
  const passes = (parts: SgdLayoutData['ratings']) =>
    parts.map(({ partition }) => pass(partition.columns.offsets as Int32Array));
  const ofRows = passes(laid.ratings);
  const batches = Math.ceil(ratings.ratings / BATCH_RATINGS);
  return {
    ...common,
    'shrink-columns': shrunk.columns,
    ...(kind === 'hogwild'
      ? { 'sgd-epoch': [evenRanges(batches, device.wholePasses ? 1 : TASKS_PER_WORKER * workers)] }
      : {}),
    [measureStages.train]: ofRows,
    [measureStages[rows.name]]: ofRows,
    [measureStages[columns.name]]: [pass(columnOffsets)],
    ...(laid.tests === undefined ? {} : { [measureStages.test]: passes(laid.tests.flat()) }),
  };
}
