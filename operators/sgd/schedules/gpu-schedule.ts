import { UsageError } from '../../../engine/errors.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { sgdFeatures, type SgdParams } from '../params.ts';
import { BATCH_RATINGS, type ScheduleProblem, type SgdSchedule, sidesOf } from './schedule.ts';
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
