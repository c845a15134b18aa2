import { formatBytes } from '../../engine/format.ts';
import type { DeviceInfo } from '../../engine/executor.ts';
import { factorBytes } from '../planner/sizes.ts';
import { type BandSizes, bandBytes, bandTotal } from '../sgd-blocks-bytes.ts';
import { hogwildTeams } from './gpu-schedule.ts';
import type { SgdParams } from './params.ts';
import { BATCH_RATINGS, type ScheduleProblem, type SgdSchedule } from './schedule.ts';
import { describeTiles, sgdPrecision, teamOf, tileShape } from './tiles.ts';

/** How the schedule blocks is carried out on GPUs. */
export interface DeviceBlocks {
  /** What steps the ratings of a block. */
  readonly steps: 'tile' | 'hogwild';
  /** Whether all blocks of ratings are expected to stay on their devices. */
  readonly resident: boolean;
  /** Bytes on each device, at most. */
  readonly deviceBytes: number;
  /** Bytes of column segments that go to devices in an epoch, and as many that come back. */
  readonly movedBytes: number;
}

/** Segments for each device, so that there are free ones to go on with (cuMF_SGD, section 5.5.2), and altogether at least. */
const SEGMENTS_A_DEVICE = 2;
const LEAST_SEGMENTS = 4;
const MOST_SEGMENTS = 4096;

/** How much larger than the average a block, and a segment, is expected to be at most. */
const LARGEST = 1.25;

/**
 * The schedule blocks on GPUs (cuMF_SGD, section 4). A pure function.
 *
 *     i = a band of rows for each device, which stay there; j >= 2 i segments of columns, which go from device to device
 *
 * j grows, where blocks of ratings cannot all stay on their devices, until two of them have room.
 */
export function blocksSchedule(problem: ScheduleProblem, params: SgdParams, devices: readonly DeviceInfo[], why: string): SgdSchedule & { readonly deviceBlocks: DeviceBlocks } {
  const { users, items, ratings = 0, testRatings = 0 } = problem;
  const [device] = devices;
  const rows = users >= items ? 'users' : 'items';
  const [rowCount, columnCount] = rows === 'users' ? [users, items] : [items, users];
  const columns = rows === 'users' ? 'items' : 'users';
  const features = params.rank + (params.biases ? 2 : 0);
  const precision = sgdPrecision(params, device);
  const rowBands = Math.max(1, Math.min(devices.length, rowCount));
  const capacity = leastCapacity(devices);
  const at = (columnBands: number) => {
    const blockRatings = Math.ceil(ratings / (rowBands * columnBands));
    const width = Math.ceil(columnCount / columnBands);
    const shape = tileShape({ columns: width, ratings: blockRatings }, params, device);
    const steps = shape === undefined ? 'hogwild' : 'tile';
    const largest = (average: number, whole: number) => Math.min(whole, Math.ceil(LARGEST * average));
    const sizes: BandSizes = {
      rows: Math.ceil(rowCount / rowBands),
      width: largest(width, columnCount),
      segments: columnBands,
      ratings: Math.ceil(ratings / rowBands),
      blockRatings: largest(blockRatings, ratings),
      testRatings: Math.ceil(testRatings / rowBands),
      testBlockRatings: largest(testRatings / (rowBands * columnBands), testRatings),
    };
    const bytes = bandBytes(sizes, params, device, { steps, precision });
    return { columnBands, width, blockRatings, shape, steps, bytes, ...bandTotal(bytes, capacity) } as const;
  };
  const most = Math.max(1, Math.min(columnCount, MOST_SEGMENTS));
  let cut = at(Math.min(most, Math.max(LEAST_SEGMENTS, SEGMENTS_A_DEVICE * devices.length)));
  while (cut.columnBands < most && cut.total > capacity) cut = at(Math.min(most, 2 * cut.columnBands));
  const { columnBands, width, blockRatings, shape, steps, bytes, resident, total } = cut;
  const movedBytes = rowBands * factorBytes(columnCount, features, device.strideStep);
  const lanes = shape?.lanes ?? teamOf(features, device.limits);
  const workers = shape ? (shape.tiles * shape.threads) / shape.lanes : hogwildTeams(width, blockRatings);
  const where = rowBands === 1 ? 'all rows stay on the GPU' : `a band of ${rows} and its factors stay on each of ${rowBands} GPUs`;
  const grid = `${rowBands} x ${columnBands} blocks: ${where}; only segments of ${columns} move, ${formatBytes(movedBytes)} up and down an epoch, in an order drawn for each`;
  const kept = resident
    ? `all blocks of ratings stay where they are stepped: ${formatBytes(bytes.factors)} of factors and ${formatBytes(bytes.all)} of ratings${rowBands === 1 ? '' : ' on each GPU'}`
    : `blocks of ratings are staged: ${formatBytes(bytes.all)} and ${formatBytes(bytes.factors)} of factors do not fit ${formatBytes(capacity)}; two blocks at a time, ${formatBytes(bytes.two)}, do: one is stepped while the next one comes`;
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
    deviceBlocks: { steps, resident, deviceBytes: total, movedBytes },
    reasons: [why, grid, kept, within],
  };
}

/** Of the device that has least; Infinity where nobody tells. */
export function leastCapacity(devices: readonly DeviceInfo[]): number {
  return Math.min(...devices.map(({ capacityBytes }) => capacityBytes ?? Number.POSITIVE_INFINITY));
}
