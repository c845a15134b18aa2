import { type DeviceInfo, SOFTWARE_MARK } from '../../../engine/plan/device-info.ts';
import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { SgdParams } from '../params.ts';
import { type ScheduleProblem, type SgdSchedule, sidesOf } from './schedule.ts';
import { tileShape } from './tiles.ts';

/**
 * Seconds of one H200 for each feature. With tiles: `rating` for each rating, `visit` for each row that a
 * tile reads. With Hogwild!, for each rating, including the columns, which are read from memory. Measured at
 * k = 128 on the shapes of Netflix and YahooMusic.
 */
const FEATURE = {
  tile: { plain: { rating: 0.187e-12, visit: 0.488e-12 }, biases: { rating: 0.334e-12, visit: 0.775e-12 } },
  hogwild: { plain: 2.1e-12, biases: 2.8e-12 },
} as const;

/**
 * Rates for passing factors of columns between devices, measured on two H200s. Bytes per second that a device
 * sends and receives at the same time: `beside` while it steps ratings, `between` two epochs, while it waits.
 * `perBlock`: seconds of a block in addition to its steps: all rows of its band are converted to float16 and
 * back, columns are copied out of memory and in, and its last tiles leave most of the device idle. Fitted to
 * yahoomusic on two H200s and two H100s (bench/results, `cards-sgd` and `cards-eight-bits`).
 */
const PASSED = { beside: 6.4e9, between: 4.4e9, perBlock: 2.6e-3 } as const;

/**
 * Several devices must save at least this fraction of an epoch, since they take more memory, and times are
 * estimates.
 */
const SAVES = 0.15;

/**
 * Estimated seconds of an epoch on several devices. Steps and the passing of columns overlap, so the longer
 * of the two counts. Columns that must be passed before any device can start are added.
 */
export function sharedSeconds(
  problem: ScheduleProblem,
  params: SgdParams,
  device: DeviceInfo,
  { rowBands, columnBands, deviceBlocks }: SgdSchedule,
): number {
  const steps = stepSeconds(problem, params, device, { rowBands, columnBands }) / rowBands;
  const between = deviceBlocks?.stays ? 0 : 1 - 1 / rowBands;
  const columnBytes =
    rowBands === 1 ? 0 : (deviceBlocks?.movedBytes ?? 0) / (rowBands - 1 + between) / rowBands;
  const passed = ((rowBands - 1) * columnBytes) / PASSED.beside;
  // The first segment (range of columns) can be sent only after its steps, and the last one can be stepped
  // only after it was received, so these two steps do not overlap the passing.
  return (
    Math.max(steps + PASSED.perBlock * columnBands, passed + (2 * steps) / columnBands) +
    (between * columnBytes) / PASSED.between
  );
}

/**
 * Estimated seconds for one device to step all blocks of a grid. Each tile reads every row that has ratings
 * in it.
 */
function stepSeconds(
  problem: ScheduleProblem,
  params: SgdParams,
  device: DeviceInfo,
  { rowBands, columnBands }: Pick<SgdSchedule, 'rowBands' | 'columnBands'>,
): number {
  const { ratings = 0 } = problem;
  const { rowCount, columnCount } = sidesOf(problem);
  const how = params.biases ? 'biases' : 'plain';
  const own = ratings / (rowBands * columnBands);
  const tiles =
    params.schedule === 'hogwild'
      ? undefined
      : tileShape({ columns: Math.ceil(columnCount / columnBands), ratings: own }, params, device)?.tiles;
  if (tiles === undefined) return ratings * params.rank * FEATURE.hogwild[how];
  const { rating, visit } = FEATURE.tile[how];
  const most = (rowCount / rowBands) * tiles;
  return (
    params.rank * (ratings * rating + rowBands * columnBands * most * (1 - Math.exp(-own / most)) * visit)
  );
}

/**
 * The reason to use only one of several GPUs, if an epoch on all of them would take longer because columns
 * must be passed between them. Undefined if several GPUs save time.
 */
export function reasonForOne(
  problem: ScheduleProblem,
  params: SgdParams,
  devices: readonly DeviceInfo[],
  shared: SgdSchedule,
): string | undefined {
  const { ratings } = problem;
  const { deviceBlocks } = shared;
  if (
    ratings === undefined ||
    !deviceBlocks?.resident ||
    devices.some(({ ownMemory, description }) => !ownMemory || description.endsWith(SOFTWARE_MARK))
  )
    return undefined;
  const alone = stepSeconds(problem, params, devices[0], { rowBands: 1, columnBands: 1 });
  const together = sharedSeconds(problem, params, devices[0], shared);
  if (together < (1 - SAVES) * alone) return undefined;
  return `one of ${devices.length} devices: an epoch takes about ${formatMilliseconds(1000 * alone)} there, and ${formatMilliseconds(1000 * together)} on all of them, which pass ${formatBytes(deviceBlocks.movedBytes)} of columns on`;
}
