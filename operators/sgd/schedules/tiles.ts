import type { DeviceLimits } from '../../../engine/plan/device-info.ts';
import { formatBytes } from '../../../engine/format.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { factorStride } from '../../planner/sizes.ts';
import { sgdFeatures, type SgdParams } from '../params.ts';

/**
 * The division of the columns into tiles, whose factors each fit into a workgroup's memory, and the threads
 * of each tile: see the task sgd-tiles.
 */
export interface TileShape {
  readonly tiles: number;
  /** Most columns of a tile. */
  readonly places: number;
  readonly lanes: number;
  readonly threads: number;
  readonly precision: 'f32' | 'f16';
  /** Precision of the arithmetic. */
  readonly arithmetic: 'f32' | 'f16';
}

/**
 * Number of workgroups that a large GPU runs at the same time, one for each multiprocessor. More tiles run in
 * waves of this number.
 */
const WAVE = 132;

/** Most tiles among which a GPU can divide the ratings. */
const MOST_TILES = 4096;

/** Threads of a workgroup, if the adapter allows it. */
const THREADS = 1024;

/**
 * Fewest ratings of an epoch for each team of threads, and most teams for each column. Beyond these limits
 * teams overwrite each other's steps so often that this costs more than the speed gains.
 */
const LEAST_RATINGS = 256;
const TEAMS_A_COLUMN = 4;

/**
 * Number of features for each thread of a team, which steps one rating. Larger teams step fewer ratings at
 * the same time, so fewer steps overwrite each other.
 */
const FEATURES_A_LANE = 16;

/** Number of features that a thread reads at once (a piece): 16 bytes in float16. */
const PIECE = 8;

/** Precision in which factors are stored while they are stepped. */
export function sgdPrecision(
  { precision }: Pick<SgdParams, 'precision'>,
  { kind }: Pick<DeviceInfo, 'kind'>,
): 'f32' | 'f16' {
  return precision === 'f32' || (precision === 'auto' && kind !== 'gpu') ? 'f32' : 'f16';
}

/** Threads that step one rating together, if many ratings are stepped at the same time. */
export function teamOf(features: number, limits: DeviceLimits | undefined): number {
  return powerOfTwo(features / FEATURES_A_LANE, limits);
}

/**
 * Number of threads that step one rating if few ratings are stepped at the same time: one thread for each 16
 * bytes of a row, so that a step takes the least time.
 */
export function wideTeam(
  features: number,
  precision: 'f32' | 'f16',
  limits: DeviceLimits | undefined,
): number {
  return powerOfTwo(features / (precision === 'f16' ? 8 : 4), limits);
}

function powerOfTwo(least: number, limits: DeviceLimits | undefined): number {
  return Math.max(1, Math.min(2 ** Math.ceil(Math.log2(Math.max(1, least))), limits?.teamLanes ?? 1));
}

interface TeamShape {
  readonly lanes: number;
  readonly threads: number;
  readonly arithmetic: 'f32' | 'f16';
}

/** Chooses the number of threads that step one rating (`lanes`) and the most threads of a workgroup. */
function teamShape(
  features: number,
  stride: number,
  precision: 'f32' | 'f16',
  limits: DeviceLimits,
): TeamShape {
  if (precision === 'f32' || !limits.float16)
    return { lanes: teamOf(features, limits), threads: THREADS, arithmetic: 'f32' };
  const lanes = powerOfTwo(halfTeam(stride / PIECE), limits);
  const tail = hasTail(features, stride, lanes);
  const each = tail ? Math.floor(features / PIECE / lanes) : Math.ceil(stride / PIECE / lanes);
  return {
    lanes,
    threads: lanes < 4 || each > 4 || tail ? 512 : each > 2 ? 768 : THREADS,
    arithmetic: 'f16',
  };
}

/**
 * A row of factors is divided among a team's threads in pieces of eight features. True if the padded pieces
 * cannot be divided evenly, but the full pieces can, with at most one more pair of features for each thread.
 */
function hasTail(features: number, stride: number, lanes: number): boolean {
  const whole = Math.floor(features / PIECE);
  return (
    (stride / PIECE) % lanes !== 0 &&
    whole >= lanes &&
    features - PIECE * (whole - (whole % lanes)) <= 2 * lanes
  );
}

/** Bytes of a column's factors in workgroup memory. */
function columnBytes(
  features: number,
  lanes: number,
  precision: 'f32' | 'f16',
  strideStep: number | undefined,
): number {
  const stride = factorStride(features, strideStep);
  if (precision === 'f16' && hasTail(features, stride, lanes)) return 2 * PIECE * Math.ceil(features / PIECE);
  return stride * (precision === 'f16' ? 2 : 4);
}

/**
 * Number of threads of a team that computes in float16, by the number of pieces of a row. In epochs of
 * Netflix's shape on an H200, two pieces a thread are fastest up to 64 features, and four above, or five if
 * they divide evenly. A team whose last piece is partial takes up to half as much time again.
 */
function halfTeam(pieces: number): number {
  if (pieces <= 2) return 1;
  if (pieces <= 6 || pieces === 10) return 2;
  return pieces <= 20 ? 4 : pieces / 4;
}

/**
 * Divides the columns into tiles: the fewest whose factors fit into workgroup memory, rounded up to whole
 * waves, so that no multiprocessor is idle in the last wave. A tile has at most four teams for each of its
 * columns, and no more teams than its ratings keep busy. Returns undefined if there would be too many tiles,
 * or if one column does not fit.
 */
export function tileShape(
  { columns, ratings }: { readonly columns: number; readonly ratings: number },
  params: SgdParams,
  device: DeviceInfo,
): TileShape | undefined {
  const { limits } = device;
  if (limits === undefined) return undefined;
  const features = sgdFeatures(params);
  const precision = sgdPrecision(params, device);
  const {
    lanes,
    threads: mostThreads,
    arithmetic,
  } = teamShape(features, factorStride(features, device.strideStep), precision, limits);
  const most = Math.floor(
    limits.workgroupBytes /
      (columnBytes(features, lanes, precision, device.strideStep) + (params.rate === 'adagrad' ? 4 : 0)),
  );
  if (most === 0) return undefined;
  const waves = Math.ceil(columns / (WAVE * most));
  const tiles = Math.min(columns, WAVE * waves);
  if (tiles > MOST_TILES) return undefined;
  const places = Math.ceil(columns / tiles);
  const busy = Math.ceil(ratings / (tiles * LEAST_RATINGS));
  const teams = Math.max(
    1,
    Math.min(
      Math.floor(Math.min(mostThreads, limits.workgroupThreads) / lanes),
      TEAMS_A_COLUMN * Math.floor(columns / tiles),
      busy,
    ),
  );
  return { tiles, places, lanes, threads: teams * lanes, precision, arithmetic };
}

/** Number of teams of all tiles together. */
export function teamsOfTiles({ tiles, threads, lanes }: TileShape): number {
  return (tiles * threads) / lanes;
}

/**
 * Describes tiles for a printed plan, such as "132 tiles of at most 135 columns, 33.8 KiB of workgroup memory
 * each; ...".
 */
export function describeTiles(
  { tiles, places, lanes, threads, precision, arithmetic }: TileShape,
  features: number,
  strideStep: number | undefined,
): string {
  const bytes = places * columnBytes(features, lanes, precision, strideStep);
  return `${tiles} tiles of at most ${places} columns, whose factors take ${formatBytes(bytes)} of a workgroup's memory; ${threads / lanes} teams of ${lanes} threads step a tile, factors are stored ${arithmetic === 'f16' ? 'and stepped ' : ''}as ${precision === 'f16' ? 'float16' : 'float32'} meanwhile`;
}
