import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { formatBytes } from '../../../engine/format.ts';
import { factorBytes } from '../../planner/sizes.ts';
import { hogwildTeams } from './gpu-schedule.ts';
import type { SgdParams } from '../params.ts';
import { BATCH_RATINGS, type ScheduleProblem, type SgdSchedule } from './schedule.ts';
import { describeTiles, sgdPrecision, teamOf, tileShape } from './tiles.ts';

/** Least number of segments for each device, so that a device that ends finds a free one (cuMF_SGD, section 5.5.2), and of all. */
export const SEGMENTS_A_DEVICE = 2;
export const LEAST_SEGMENTS = 4;

/** Most segments of all devices. */
export const MOST_SEGMENTS = 4096;

/** Numbers of segments for each device that are compared where segments go from device to device: with more of them devices wait less, and a block has fewer columns. */
export const PASSED_A_DEVICE = [2, 4] as const;

/** Bound on the width of a segment, as a multiple of the average. */
const LARGEST = 1.25;

/**
 * The schedule blocks on devices (cuMF_SGD, section 4). A pure function.
 *
 *     i = a band of rows for each device, which stay there; j >= 2 i segments of columns, which go from device to device: where all blocks stay too, straight to the device that has
 *     the next turn
 */
export function blocksSchedule(problem: ScheduleProblem, params: SgdParams, devices: readonly DeviceInfo[], why: string, columnBands: number, resident: boolean): SgdSchedule {
  const { users, items, ratings = 0 } = problem;
  const [device] = devices;
  const rows = users >= items ? 'users' : 'items';
  const [rowCount, columnCount] = rows === 'users' ? [users, items] : [items, users];
  const columns = rows === 'users' ? 'items' : 'users';
  const features = params.rank + (params.biases ? 2 : 0);
  const precision = sgdPrecision(params, device);
  const rowBands = Math.max(1, Math.min(devices.length, rowCount));
  const blockRatings = Math.ceil(ratings / (rowBands * columnBands));
  const width = Math.ceil(columnCount / columnBands);
  const shape = tileShape({ columns: width, ratings: blockRatings }, params, device);
  const columnBytes = factorBytes(columnCount, features, device.strideStep);
  const movedBytes = resident ? (rowBands - 1 / rowBands) * (precision === 'f16' ? columnBytes / 2 : columnBytes) : rowBands * columnBytes;
  const lanes = shape?.lanes ?? teamOf(features, device.limits);
  const workers = shape ? (shape.tiles * shape.threads) / shape.lanes : hogwildTeams(width, blockRatings);
  const where = rowBands === 1 ? 'all rows stay on the device' : `a band of ${rows} and its factors stay on each of ${rowBands} devices`;
  const grid = `${rowBands} x ${columnBands} blocks: ${where}; ${resident && rowBands === 1 ? `so do those of ${columns}` : `only segments of ${columns} move, ${formatBytes(movedBytes)} ${resident ? `an epoch, from device to device${precision === 'f16' ? ' as float16' : ''}, in an order drawn for each` : 'up and down an epoch, in an order drawn for each'}`}`;
  const kept = resident
    ? `all blocks of ratings stay where they are stepped`
    : `blocks of ratings are staged, two at a time: one is stepped while the next one comes`;
  const within = shape
    ? `a block is stepped by ${describeTiles(shape, features, device.strideStep)}`
    : `a block is stepped by ${workers} teams of ${lanes} threads, in batches of ${BATCH_RATINGS} of its shuffled ratings (Hogwild!)`;
  return {
    kind: 'blocks',
    workers,
    rows,
    rowBands,
    columnBands,
    precision,
    lanes,
    deviceBlocks: { steps: shape === undefined ? 'hogwild' : 'tile', resident, width: Math.min(columnCount, Math.ceil(LARGEST * width)), movedBytes },
    reasons: [why, grid, kept, within],
  };
}
