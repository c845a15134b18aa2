import { type DeviceInfo, SOFTWARE_MARK } from '../../../engine/plan/device-info.ts';
import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { SgdParams } from '../params.ts';
import { type ScheduleProblem, type SgdSchedule, sidesOf } from './schedule.ts';
import { tileShape } from './tiles.ts';

/**
 * Seconds for each feature on one H200. With tiles: of a rating, and of each row that a tile reads. With
 * Hogwild!: of a step, which also reads columns from memory. Measured at k = 128 on the shapes of Netflix
 * and YahooMusic.
 */
const FEATURE = {
  tile: { plain: { rating: 0.187e-12, visit: 0.488e-12 }, biases: { rating: 0.334e-12, visit: 0.775e-12 } },
  hogwild: { plain: 2.1e-12, biases: 2.8e-12 },
} as const;

/**
 * Measured on two H200. Bytes a second that a device both sends and receives: `beside` during its steps,
 * `between` two epochs, when it waits for them. `perBlock`: seconds of a block in addition to its steps: all
 * rows of its band are converted to float16 and back, columns are copied out of memory and in, and its last
 * tiles leave most of the device idle.
 */
const PASSED = { beside: 6.4e9, between: 4.4e9, perBlock: 1.8e-3 } as const;

/**
 * Share of an epoch that several devices must save, since they take memory, and the seconds are estimates.
 */
const SAVES = 0.15;

/**
 * Seconds of an epoch on several devices: the longer of its steps and of the columns passed between devices
 * meanwhile, plus the columns that are passed before a device can start.
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
  // The first segment can be passed only after its steps, and the last one can be stepped only after it was
  // passed.
  return (
    Math.max(steps + PASSED.perBlock * columnBands, passed + (2 * steps) / columnBands) +
    (between * columnBytes) / PASSED.between
  );
}

/** Seconds for one device to step all blocks of a grid. Each tile reads every row that has ratings in it. */
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
 * The reason to step all ratings on one of several GPUs: on all of them, steps and passed columns would take
 * longer. Undefined if several GPUs save time.
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
