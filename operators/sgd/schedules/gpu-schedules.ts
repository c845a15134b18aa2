import { UsageError } from '../../../engine/errors.ts';
import { formatBytes } from '../../../engine/format.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { blockLimit, factorBytes } from '../../planner/sizes.ts';
import { sgdFeatures, type SgdParams } from '../params.ts';
import {
  BATCH_RATINGS,
  type ScheduleProblem,
  type SgdSchedule,
  sidesOf,
  bandsOfBlocks,
  type DeviceBlocks,
} from './schedule.ts';
import { describeTiles, sgdPrecision, teamOf, teamsOfTiles, tileShape, wideTeam } from './tiles.ts';

/**
 * Most teams for Hogwild!, enough to hide memory latency. A team is a group of threads that steps one rating.
 */
const TEAMS = 8448;

/**
 * Fewest columns for each team, so that teams rarely step the same column. At Netflix's shape, two columns
 * per team give the error of sequential SGD one epoch later.
 */
const COLUMNS_A_TEAM = 2;

/**
 * Most workers of wavefront-update. A wave lasts as long as its longest block. If some columns are popular,
 * the longest is the block of the most popular one, so more workers do not make a wave shorter.
 */
const WAVE_WORKERS = 256;

/** Least average number of ratings of a block; with fewer, the threads of a wave are mostly idle. */
const BLOCK_RATINGS = 16;

/**
 * Chooses the schedule for one GPU that holds all data. A pure function.
 *
 *     tile        if the factors of the columns fit the workgroups' memories, in at most MOST_TILES tiles
 *     hogwild     otherwise; s teams, at most one for two columns and one for a batch of ratings
 *     wavefront   only on request: i = s <= 256 bands of rows, j = 2 s bands of columns, at least 16 ratings
 *                 a block; waves in sequence, the same bits each time
 */
export function gpuSchedule(problem: ScheduleProblem, params: SgdParams, device: DeviceInfo): SgdSchedule {
  if (params.schedule === 'wavefront') return wavefront(problem, params, device);
  const { ratings = Number.POSITIVE_INFINITY } = problem;
  const { rows, columnCount } = sidesOf(problem);
  const precision = sgdPrecision(params, device);
  const whole = { rows, rowBands: 1, columnBands: 1, precision } as const;
  const why = (ofAuto: string) =>
    params.schedule === 'auto' ? `schedule auto: ${ofAuto}` : `schedule ${params.schedule}, as requested`;
  const features = sgdFeatures(params);
  const shape =
    params.schedule === 'hogwild' ? undefined : tileShape({ columns: columnCount, ratings }, params, device);
  if (shape !== undefined) {
    const fastest =
      'tiles, the fastest on a GPU: the factors of columns, which are written most, stay in the ' +
      'memory of a workgroup';
    return {
      ...whole,
      kind: 'tile',
      workers: teamsOfTiles(shape),
      tile: shape,
      reasons: [why(fastest), describeTiles(shape, features, device.strideStep)],
    };
  }
  if (params.schedule === 'tile')
    throw new UsageError(
      `schedule tile cannot be used: ${columnCount.toLocaleString('en')} columns of ${features} features ` +
        `do not fit the workgroups of this GPU`,
      { advice: 'Use schedule hogwild, or a smaller rank' },
    );
  const lanes = teamOf(features, device.limits);
  const workers = hogwildTeams(columnCount, ratings);
  const teams =
    `${workers} teams of ${lanes} threads; the ratings are shuffled once; each epoch takes their ` +
    `batches of ${BATCH_RATINGS} in another order`;
  const beyondTiles = 'hogwild, since the factors of the columns do not fit the memories of the workgroups';
  return { ...whole, kind: 'hogwild', workers, lanes, reasons: [why(beyondTiles), teams] };
}

/** Wavefront-update with one band of rows for each team, and twice that number of bands of columns. */
function wavefront(problem: ScheduleProblem, params: SgdParams, device: DeviceInfo): SgdSchedule {
  const { ratings = Number.POSITIVE_INFINITY } = problem;
  const { rows, rowCount, columnCount } = sidesOf(problem);
  const precision = sgdPrecision(params, device);
  const most = Math.min(
    WAVE_WORKERS,
    rowCount,
    Math.floor(columnCount / 2),
    Math.floor(Math.sqrt(ratings / (2 * BLOCK_RATINGS))),
  );
  const workers = Math.max(1, most);
  const columnBands = Math.min(columnCount, 2 * workers);
  const lanes = wideTeam(sgdFeatures(params), precision, device.limits);
  const waves =
    `${workers} x ${columnBands} blocks, a band of rows for each of ${workers} teams of ${lanes} ` +
    `threads; ${columnBands} waves an epoch, in each of which no two teams have the same band of columns`;
  const reasons = ['schedule wavefront, as requested', waves];
  return { kind: 'wavefront', workers, rows, rowBands: workers, columnBands, lanes, precision, reasons };
}

/** Number of teams that step ratings without locks. */
export function hogwildTeams(columns: number, ratings: number): number {
  return Math.max(
    1,
    Math.min(TEAMS, Math.floor(columns / COLUMNS_A_TEAM), Math.ceil(ratings / BATCH_RATINGS)),
  );
}

/**
 * Fewest segments (ranges of columns) for each device, so that a device that has finished a segment finds a
 * free one (cuMF_SGD, section 5.5.2). LEAST_SEGMENTS: fewest segments in total.
 */
export const SEGMENTS_A_DEVICE = 2;
export const LEAST_SEGMENTS = 4;

/** Most segments in total. */
export const MOST_SEGMENTS = 4096;

/** Most bands of rows of one device. */
export const MOST_BANDS = 1024;

/**
 * The numbers of segments per device that are compared if devices pass segments to each other. With more
 * segments devices wait less, but each block has fewer columns.
 */
export const PASSED_A_DEVICE = [2, 4] as const;

/** Largest width of a segment, as a multiple of the average. */
const LARGEST = 1.25;

/** Devices that step a problem by blocks, and the reason. */
export interface BlocksProblem {
  readonly problem: ScheduleProblem;
  readonly params: SgdParams;
  readonly devices: readonly DeviceInfo[];
  readonly why: string;
}

/**
 * The free choices of the schedule `blocks`: the number of bands and segments, and the data that stay on
 * devices.
 */
interface BlocksForm extends Pick<DeviceBlocks, 'resident' | 'bandsADevice' | 'rowsStaged' | 'stays'> {
  readonly columnBands: number;
}

/**
 * The schedule `blocks` on devices (cuMF_SGD, section 4). R is cut into i bands of rows and j segments of
 * columns; a block is the ratings of one band and one segment. A pure function.
 *
 * - Several devices: one band of rows for each device, which stays there; j >= 2 i segments of columns, which
 *   are passed from device to device. If the ratings of all blocks stay on the devices too, a segment is sent
 *   directly to the device that steps it next.
 * - One device whose buffers cannot hold all rows, or all ratings: i bands, stepped in a random order for
 *   each epoch, and all columns as one segment, which stays there.
 */
export function blocksSchedule(
  { problem, params, devices, why }: BlocksProblem,
  form: BlocksForm,
): SgdSchedule {
  const { ratings = 0 } = problem;
  const [device] = devices;
  const { columnBands, resident, bandsADevice, rowsStaged, stays } = form;
  const { rows, rowCount, columnCount } = sidesOf(problem);
  const features = sgdFeatures(params);
  const precision = sgdPrecision(params, device);
  const rowBands = Math.max(1, Math.min(devices.length * (bandsADevice ?? 1), rowCount));
  const block = {
    columns: Math.ceil(columnCount / columnBands),
    ratings: Math.ceil(ratings / (rowBands * columnBands)),
  };
  const shape = tileShape(block, params, device);
  const lanes = shape?.lanes ?? teamOf(features, device.limits);
  const workers = shape ? teamsOfTiles(shape) : hogwildTeams(block.columns, block.ratings);
  const movedBytes = bytesMoved({ ...form, rowBands, precision }, (side) =>
    factorBytes(side === 'rows' ? rowCount : columnCount, features, device.strideStep),
  );
  const places = placesOfFactors({ ...form, rowBands, precision }, problem, formatBytes(movedBytes));
  const kept = resident
    ? `all blocks of ratings stay where they are stepped`
    : `blocks of ratings are staged, two at a time: one is stepped while the next is copied`;
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
    ...(ratings > blockLimit.ratings && { inBands: true }),
    deviceBlocks: {
      steps: shape === undefined ? 'hogwild' : 'tile',
      resident,
      ...(bandsADevice !== undefined && { bandsADevice }),
      ...(rowsStaged && { rowsStaged }),
      ...(stays && { stays }),
      width: Math.min(columnCount, Math.ceil(LARGEST * block.columns)),
      movedBytes,
    },
    reasons: [why, `${rowBands} x ${columnBands} blocks: ${places}`, kept, within],
  };
}

type BlocksGrid = BlocksForm & Pick<SgdSchedule, 'rowBands' | 'precision'>;

/** Bytes of factors that are sent to devices in an epoch. `bytesOf`: bytes of all factors of a side. */
function bytesMoved(
  { resident, bandsADevice, rowsStaged, stays, rowBands, precision }: BlocksGrid,
  bytesOf: (side: 'rows' | 'columns') => number,
): number {
  if (bandsADevice !== undefined) return rowsStaged ? bytesOf('rows') : 0;
  if (!resident) return rowBands * bytesOf('columns');
  const passes = rowBands - (stays ? 1 : 1 / rowBands);
  return passes * (precision === 'f16' ? bytesOf('columns') / 2 : bytesOf('columns'));
}

/** Text for a printed plan: which factors stay on devices, and which are sent. */
function placesOfFactors(
  { resident, bandsADevice, rowsStaged, stays, rowBands, precision }: BlocksGrid,
  problem: ScheduleProblem,
  moved: string,
): string {
  const { rows, columns } = sidesOf(problem);
  if (bandsADevice !== undefined) {
    const factors = rowsStaged
      ? `the factors of ${rows} come and go band by band, ${moved} up and down an epoch`
      : `so do the factors of ${rows}`;
    return `bands of ${rows} are stepped one after the other, in an order drawn for each epoch; ${columns} stay on the device, and ${factors}`;
  }
  const where =
    rowBands === 1
      ? 'all rows stay on the device'
      : `a band of ${rows} and its factors stay on each of ${rowBands} devices`;
  const moves = `only segments of ${columns} move, ${moved}`;
  if (!resident) return `${where}; ${moves} up and down an epoch, in an order drawn for each`;
  if (rowBands === 1) return `${where}; so do those of ${columns}`;
  const halved = precision === 'f16' ? ' as float16' : '';
  const begins = stays ? '; a device begins with those that it ended with' : '';
  return `${where}; ${moves} an epoch, from device to device${halved}, in an order drawn for each${begins}`;
}

/**
 * Largest number of rows of a band, relative to the average, if bands have about equal numbers of ratings.
 */
const UNEQUAL_ROWS = 1.05;

/** Bytes of a rating in the lists that a GPU makes for tiles. */
const LISTED_BYTES = 8;

/**
 * The fewest bands of rows, over all devices, for which a band's ratings fit into one block, and its factors
 * into one buffer.
 */
export function leastBands(
  problem: ScheduleProblem,
  params: SgdParams,
  { bindingBytes = Number.POSITIVE_INFINITY, strideStep }: DeviceInfo,
): number {
  const { rowCount: rows } = sidesOf(problem);
  const factors = factorBytes(rows, sgdFeatures(params), strideStep);
  return Math.min(
    rows,
    Math.max(
      bandsOfBlocks(problem.ratings ?? 0),
      factors > bindingBytes ? Math.ceil((UNEQUAL_ROWS * factors) / bindingBytes) : 1,
    ),
  );
}

/**
 * The fewest bands of rows, with all columns as one segment, for which a band's lists for tiles fit into one
 * buffer.
 */
export function bandsOfLists(
  ratings: number,
  { bindingBytes = Number.POSITIVE_INFINITY }: DeviceInfo,
): number {
  return Math.ceil((UNEQUAL_ROWS * LISTED_BYTES * ratings) / bindingBytes);
}

/** Number of devices among which the bands of rows are divided. */
export function devicesOf({ rowBands, deviceBlocks }: SgdSchedule): number {
  return deviceBlocks === undefined ? 1 : Math.ceil(rowBands / (deviceBlocks.bandsADevice ?? 1));
}

/**
 * True if the ratings are in bands that all stay on a single device with its own memory, so that they can be
 * freed in host memory.
 */
export function bandsLeave(
  { inBands = false, rowBands, deviceBlocks }: SgdSchedule,
  { ownMemory }: DeviceInfo,
): boolean {
  return inBands && ownMemory && (deviceBlocks?.resident ?? false) && deviceBlocks?.bandsADevice === rowBands;
}

/**
 * For each side, true if its factors stay on devices; false if they are in host memory and are copied to a
 * device with each block.
 */
export function staysOnDevice({ deviceBlocks, columnBands }: SgdSchedule): {
  readonly rows: boolean;
  readonly columns: boolean;
} {
  if (deviceBlocks === undefined) return { rows: true, columns: true };
  const { resident, bandsADevice, rowsStaged = false } = deviceBlocks;
  return { rows: !rowsStaged, columns: resident || (bandsADevice !== undefined && columnBands === 1) };
}
