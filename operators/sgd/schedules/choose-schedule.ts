import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
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
} from './blocks-schedule.ts';
import { reasonForOne, sharedSeconds } from './device-count.ts';
import { gpuSchedule } from './gpu-schedule.ts';
import type { SgdParams } from '../params.ts';
import { factorBytes } from '../../planner/sizes.ts';
import { cpuSchedule, type ScheduleProblem, type SgdSchedule, sidesOf, VERSIONS } from './schedule.ts';

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
