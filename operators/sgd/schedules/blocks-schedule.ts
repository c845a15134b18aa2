import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { formatBytes } from '../../../engine/format.ts';
import { blockLimit, factorBytes } from '../../planner/sizes.ts';
import { hogwildTeams } from './gpu-schedule.ts';
import { type SgdParams, sgdFeatures } from '../params.ts';
import { BATCH_RATINGS, bandsOfBlocks, type ScheduleProblem, type SgdSchedule } from './schedule.ts';
import { describeTiles, sgdPrecision, teamOf, tileShape } from './tiles.ts';

/**
 * Least number of segments for each device, so that a device that ends finds a free one (cuMF_SGD, section
 * 5.5.2), and of all.
 */
export const SEGMENTS_A_DEVICE = 2;
export const LEAST_SEGMENTS = 4;

/** Most segments of all devices. */
export const MOST_SEGMENTS = 4096;

/** Most bands of rows of one device. */
export const MOST_BANDS = 1024;

/**
 * Numbers of segments for each device that are compared where segments go from device to device: with more of
 * them devices wait less, and a block has fewer columns.
 */
export const PASSED_A_DEVICE = [2, 4] as const;

/** Bound on the width of a segment, as a multiple of the average. */
const LARGEST = 1.25;

/** The numbers of bands and of segments, and what stays on the devices. */
export interface BlocksForm {
  readonly columnBands: number;
  readonly resident: boolean;
  /** See DeviceBlocks. */
  readonly bandsADevice?: number;
  readonly rowsStaged?: boolean;
  readonly stays?: boolean;
}

/**
 * The schedule blocks on devices (cuMF_SGD, section 4). A pure function.
 *
 *     i = a band of rows for each device, which stay there; j >= 2 i segments of columns, which go from device to device: where all blocks stay too, straight to the device that has
 *     the next turn
 *     one device whose buffers, or whose blocks, do not hold all rows: i bands, one after the other in an order drawn for each epoch, and all columns as one segment, which stays there
 *
 */
export function blocksSchedule(
  problem: ScheduleProblem,
  params: SgdParams,
  devices: readonly DeviceInfo[],
  why: string,
  { columnBands, resident, bandsADevice, rowsStaged = false, stays = false }: BlocksForm,
): SgdSchedule {
  const { users, items, ratings = 0 } = problem;
  const [device] = devices;
  const rows = users >= items ? 'users' : 'items';
  const [rowCount, columnCount] = rows === 'users' ? [users, items] : [items, users];
  const columns = rows === 'users' ? 'items' : 'users';
  const features = sgdFeatures(params);
  const precision = sgdPrecision(params, device);
  const rowBands = Math.max(1, Math.min(devices.length * (bandsADevice ?? 1), rowCount));
  const blockRatings = Math.ceil(ratings / (rowBands * columnBands));
  const width = Math.ceil(columnCount / columnBands);
  const shape = tileShape({ columns: width, ratings: blockRatings }, params, device);
  const [rowBytes, columnBytes] = [rowCount, columnCount].map((count) =>
    factorBytes(count, features, device.strideStep),
  );
  const passedBytes =
    (rowBands - (stays ? 1 : 1 / rowBands)) * (precision === 'f16' ? columnBytes / 2 : columnBytes);
  const movedBytes =
    bandsADevice !== undefined
      ? rowsStaged
        ? rowBytes
        : 0
      : resident
        ? passedBytes
        : rowBands * columnBytes;
  const lanes = shape?.lanes ?? teamOf(features, device.limits);
  const workers = shape ? (shape.tiles * shape.threads) / shape.lanes : hogwildTeams(width, blockRatings);
  const where =
    rowBands === 1
      ? 'all rows stay on the device'
      : `a band of ${rows} and its factors stay on each of ${rowBands} devices`;
  const moves =
    resident && rowBands === 1
      ? `so do those of ${columns}`
      : `only segments of ${columns} move, ${formatBytes(movedBytes)} ${resident ? `an epoch, from device to device${precision === 'f16' ? ' as float16' : ''}, in an order drawn for each${stays ? '; a device begins with those that it ended with' : ''}` : 'up and down an epoch, in an order drawn for each'}`;
  const inTurn = `bands of ${rows} are stepped one after the other, in an order drawn for each epoch; ${columns} stay on the device, and ${rowsStaged ? `the factors of ${rows} come and go band by band, ${formatBytes(movedBytes)} up and down an epoch` : `so do the factors of ${rows}`}`;
  const grid = `${rowBands} x ${columnBands} blocks: ${bandsADevice === undefined ? `${where}; ${moves}` : inTurn}`;
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
    ...(ratings > blockLimit.ratings ? { inBands: true } : {}),
    deviceBlocks: {
      steps: shape === undefined ? 'hogwild' : 'tile',
      resident,
      ...(bandsADevice === undefined ? {} : { bandsADevice }),
      ...(rowsStaged ? { rowsStaged } : {}),
      ...(stays ? { stays } : {}),
      width: Math.min(columnCount, Math.ceil(LARGEST * width)),
      movedBytes,
    },
    reasons: [why, grid, kept, within],
  };
}

/** Bands of about as many ratings have numbers of rows that differ by so much. */
const UNEQUAL_ROWS = 1.05;

/** Bytes of a rating in the lists that tiles step. */
const LISTED_BYTES = 8;

/**
 * The least bands of rows on all devices: each with no more ratings than a block, and with factors of one
 * buffer.
 */
export function leastBands(
  { users, items, ratings = 0 }: ScheduleProblem,
  params: SgdParams,
  { bindingBytes = Number.POSITIVE_INFINITY, strideStep }: DeviceInfo,
): number {
  const rows = Math.max(users, items);
  const factors = factorBytes(rows, sgdFeatures(params), strideStep);
  return Math.min(
    rows,
    Math.max(
      bandsOfBlocks(ratings),
      factors > bindingBytes ? Math.ceil((UNEQUAL_ROWS * factors) / bindingBytes) : 1,
    ),
  );
}

/** The least bands of rows whose ratings are one segment each, in lists of one buffer. */
export function bandsOfLists(
  ratings: number,
  { bindingBytes = Number.POSITIVE_INFINITY }: DeviceInfo,
): number {
  return Math.ceil((UNEQUAL_ROWS * LISTED_BYTES * ratings) / bindingBytes);
}

/** Devices among which the bands of rows are shared. */
export function devicesOf({ rowBands, deviceBlocks }: SgdSchedule): number {
  return deviceBlocks === undefined ? 1 : Math.ceil(rowBands / (deviceBlocks.bandsADevice ?? 1));
}

/**
 * True where bands in blocks of their own all stay on one device with memory of its own, and need not stay in
 * host memory.
 */
export function bandsLeave(
  { inBands = false, rowBands, deviceBlocks }: SgdSchedule,
  { ownMemory }: DeviceInfo,
): boolean {
  return inBands && ownMemory && (deviceBlocks?.resident ?? false) && deviceBlocks?.bandsADevice === rowBands;
}

/**
 * The homes of a schedule's factors: on its devices, or in host memory, from where they come with the blocks.
 */
export function staysOnDevice({ deviceBlocks, columnBands }: SgdSchedule): {
  readonly rows: boolean;
  readonly columns: boolean;
} {
  if (deviceBlocks === undefined) return { rows: true, columns: true };
  const { resident, bandsADevice, rowsStaged = false } = deviceBlocks;
  return { rows: !rowsStaged, columns: resident || (bandsADevice !== undefined && columnBands === 1) };
}
