import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import { type DeviceInfo, SOFTWARE_MARK } from '../../../engine/plan/device-info.ts';
import { factorBytes } from '../../planner/sizes.ts';
import type { SgdParams } from '../params.ts';
import {
  bandsOfLists,
  type BlocksProblem,
  blocksSchedule,
  devicesOf,
  leastBands,
  LEAST_SEGMENTS,
  MOST_BANDS,
  MOST_SEGMENTS,
  PASSED_A_DEVICE,
  SEGMENTS_A_DEVICE,
  gpuSchedule,
} from './gpu-schedules.ts';
import { cpuSchedule, type ScheduleProblem, type SgdSchedule, sidesOf, VERSIONS } from './schedule.ts';
import { tileShape } from './tiles.ts';

/**
 * Lists the schedules for a problem on these devices, best first; the caller takes the first that fits into
 * memory. A pure function.
 *
 * - `auto` on several GPUs takes blocks on all of them, or a schedule of one GPU if the exchange would take
 *   longer than the steps it saves. On one GPU it takes blocks if the other schedules do not fit.
 * - Blocks that do not all fit are staged, that is copied to the GPU for each use. With less memory there are
 *   more and smaller blocks.
 * - If a GPU's buffers cannot hold all rows' factors, or if there are more ratings than a block can hold,
 *   rows are cut into bands.
 */
export function* schedulesFor(
  problem: ScheduleProblem,
  params: SgdParams,
  devices: readonly DeviceInfo[],
): Generator<SgdSchedule> {
  const [device] = devices;
  const several = devices.length > 1;
  if (device.kind === 'cpu' && !several) return yield cpuSchedule(problem, params, device);
  if (params.schedule !== 'blocks' && (params.schedule !== 'auto' || !several)) {
    const whole =
      device.kind === 'cpu' ? cpuSchedule(problem, params, device) : gpuSchedule(problem, params, device);
    yield whole;
    if (params.schedule !== 'auto') return;
    const why = `schedule auto: blocks, since schedule ${whole.kind} does not fit the GPU`;
    yield* blocks({ problem, params, devices, why });
    return;
  }
  if (params.schedule === 'auto' && device.kind === 'gpu') {
    const one = gpuSchedule(problem, params, device);
    const [shared] = blocks({ problem, params, devices, why: '' });
    const reason = devicesOf(shared) > 1 ? reasonForOne(problem, params, devices, shared) : undefined;
    if (reason !== undefined) yield { ...one, reasons: [...one.reasons, reason] };
  }
  const why =
    params.schedule === 'blocks'
      ? 'schedule blocks, as requested'
      : `schedule auto: blocks, the one that ${devices.length} devices share`;
  yield* blocks({ problem, params, devices, why });
}

function* blocks(of: BlocksProblem): Generator<SgdSchedule> {
  const { problem, params, devices, why } = of;
  const [device] = devices;
  const least = leastBands(problem, params, device);
  if (device.kind === 'gpu' && least > devices.length) {
    const prefix = params.schedule === 'auto' ? 'auto: blocks' : 'blocks, as requested';
    const onOne =
      `schedule ${prefix}, on one of ${devices.length} GPUs, since a band of rows for each is too large ` +
      `for a buffer or a block`;
    yield* bands({ ...of, devices: [device], why: devices.length === 1 ? why : onOne }, least);
    return;
  }
  const most = Math.max(1, Math.min(sidesOf(problem).columnCount, MOST_SEGMENTS));
  const fewest = Math.min(most, Math.max(LEAST_SEGMENTS, SEGMENTS_A_DEVICE * devices.length));
  // If all blocks stay on their devices, narrower segments (ranges of columns) save little memory, so only
  // the fastest division is tried.
  yield fastest(of, most);
  for (let segments = fewest; ; segments = Math.min(most, 2 * segments)) {
    yield blocksSchedule(of, { columnBands: segments, resident: false });
    if (segments === most) return;
  }
}

/**
 * Schedules for one GPU that steps several bands of rows one after the other. In this order: all bands stay
 * there; the ratings of only two bands at a time; also the factors of only two bands at a time. With more
 * bands, each is smaller.
 */
function* bands(of: BlocksProblem, least: number): Generator<SgdSchedule> {
  const { problem, params, devices } = of;
  const [device] = devices;
  const rows = sidesOf(problem).rowCount;
  const fewest = Math.min(rows, Math.max(least, bandsOfLists(problem.ratings ?? 0, device)));
  const most = Math.min(rows, Math.max(fewest, MOST_BANDS));
  yield blocksSchedule(of, { columnBands: 1, resident: true, bandsADevice: fewest });
  for (const rowsStaged of [false, true]) {
    // More bands do not help if the factors of all rows, which stay on the GPU, do not fit.
    const cannotHelp =
      !rowsStaged &&
      device.capacityBytes !== null &&
      VERSIONS * factorBytes(rows, params.rank, device.strideStep) > device.capacityBytes;
    for (let count = fewest; count <= (cannotHelp ? fewest : most); count *= 2)
      yield blocksSchedule(of, { columnBands: 1, resident: false, bandsADevice: count, rowsStaged });
  }
}

/**
 * With `stays` (see DeviceBlocks), some blocks are stepped at the end of an epoch and again at the start of
 * the next, which delays convergence. It must save at least this fraction of an epoch.
 */
const STAYS_SAVES = 0.1;

/** The grid with the least estimated time among those whose blocks all stay on the devices. */
function fastest(of: BlocksProblem, most: number): SgdSchedule {
  const { problem, params, devices } = of;
  const schedules = PASSED_A_DEVICE.flatMap((each) => {
    const columnBands = Math.min(most, Math.max(LEAST_SEGMENTS, each * devices.length));
    return (devices.length > 1 ? [false, true] : [false]).map((stays) =>
      blocksSchedule(of, { columnBands, resident: true, stays }),
    );
  });
  const seconds = schedules.map(
    (schedule) =>
      sharedSeconds(problem, params, devices[0], schedule) /
      (schedule.deviceBlocks?.stays ? 1 - STAYS_SAVES : 1),
  );
  return schedules[seconds.indexOf(Math.min(...seconds))];
}

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
function reasonForOne(
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
