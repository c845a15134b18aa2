import { UsageError } from '../../../engine/errors.ts';
import { formatBytes, formatCount } from '../../../engine/format.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { blockLimit, factorBytes } from '../../planner/sizes.ts';
import { sgdFeatures, type SgdParams } from '../params.ts';
import type { TileShape } from './tiles.ts';

/** Number of consecutive ratings that a worker takes at a time (cuMF_SGD, section 3.2.2). */
export const BATCH_RATINGS = 256;

/** Bytes of a core's own cache that the column vectors of a block may fill. */
const SEGMENT_BYTES = 1 << 20;

/** Fewest bands of a grid. Up to four workers then use the same grid, and so give the same bits. */
const LEAST_BANDS = 8;

/** Details of the schedule `blocks` on devices, each of which has one or several bands of rows. */
export interface DeviceBlocks {
  /** Kernel that steps the ratings of a block. */
  readonly steps: 'tile' | 'hogwild';
  /**
   * True if the ratings of all blocks, and the factors of all segments of columns, stay on their devices.
   * Otherwise the ratings of two blocks at a time are on a device. Segments are then copied from host memory,
   * unless a single segment has all columns.
   */
  readonly resident: boolean;
  /** Bands of rows on each device; default: one. */
  readonly bandsADevice?: number;
  /** True if the factors of a band of rows are copied from host memory and back with each of its blocks. */
  readonly rowsStaged?: boolean;
  /**
   * True if a device starts an epoch with the segments with which it ended the previous one. Segments are
   * then sent less often, but some blocks are stepped twice in a row.
   */
  readonly stays?: boolean;
  /** Approximate number of columns of the widest segment. */
  readonly width: number;
  /** Bytes of factors sent to devices in an epoch; the same number is sent back. */
  readonly movedBytes: number;
}

/** Fewest versions of the factors in memory, since an epoch updates a copy of the previous version. */
export const VERSIONS = 2;

/** The order in which an epoch visits the ratings (takes a step for each), and the number of workers. */
export interface SgdSchedule {
  readonly kind: 'hogwild' | 'wavefront' | 'tile' | 'blocks';
  /** s: workers that step at the same time. */
  readonly workers: number;
  /** The side with more rows. Its vectors are streamed; vectors of the other side stay in the cache. */
  readonly rows: 'users' | 'items';
  /** Numbers i and j: R is cut into i bands of rows and j bands of columns. */
  readonly rowBands: number;
  readonly columnBands: number;
  /** True if there are more ratings than a block can hold. Each band of rows then has a block of its own. */
  readonly inBands?: boolean;
  /** For the schedule tile. */
  readonly tile?: TileShape;
  /** For the schedule blocks on GPUs. */
  readonly deviceBlocks?: DeviceBlocks;
  /**
   * On a GPU: the number of threads that step one rating together, and the precision in which factors are
   * stored during an epoch.
   */
  readonly lanes?: number;
  readonly precision?: 'f32' | 'f16';
  readonly reasons: readonly string[];
}

/**
 * The sizes for which a schedule is chosen. The numbers of ratings and of validation pairs are absent if not
 * known.
 */
export interface ScheduleProblem {
  readonly users: number;
  readonly items: number;
  readonly ratings?: number;
  readonly testRatings?: number;
}

/**
 * Decides whether users or items are the rows of R: the side with more of them. Vectors of rows are read in
 * sequence, vectors of columns stay in the cache. Returns the names and sizes of both.
 */
export function sidesOf({ users, items }: ScheduleProblem): {
  readonly rows: 'users' | 'items';
  readonly columns: 'users' | 'items';
  readonly rowCount: number;
  readonly columnCount: number;
} {
  return users >= items
    ? { rows: 'users', columns: 'items', rowCount: users, columnCount: items }
    : { rows: 'items', columns: 'users', rowCount: items, columnCount: users };
}

/**
 * Chooses the schedule for CPU threads: R is cut into i bands of rows and j bands of columns, for s workers.
 * A pure function.
 *
 *     hogwild     i = j = 1; every worker takes batches of 256 ratings in a shuffled order, without locks
 *     wavefront   i = s, a band of rows for each worker; j >= 2 s bands of columns, in a sequence for each worker
 *     blocks      i, j >= 2 s, so that there is always a free block to choose from (libmf; cuMF_SGD, section 5.5)
 *
 * j is increased further until the column vectors of a band, and the row vectors that are read in sequence,
 * fit into the cache of one core.
 */
export function cpuSchedule(
  problem: ScheduleProblem,
  params: SgdParams,
  { parallelism }: DeviceInfo,
): SgdSchedule {
  const { ratings = 0 } = problem;
  if (params.schedule === 'tile')
    throw new UsageError('schedule tile cannot be used on the CPU: it is for the workgroups of a GPU', {
      advice: 'Leave the schedule out, or use device gpu',
    });
  const kind = params.schedule === 'auto' ? 'blocks' : params.schedule;
  const { rows, rowCount, columnCount } = sidesOf(problem);
  const common = { kind, workers: parallelism, rows } as const;
  const why =
    params.schedule === 'auto'
      ? 'schedule auto: blocks, the fastest on CPU threads at the same error: rows are read in ' +
        'sequence, columns stay in the cache, and no step overwrites another'
      : `schedule ${kind}, as requested`;
  if (kind === 'hogwild') {
    return {
      ...common,
      rowBands: 1,
      columnBands: 1,
      reasons: [
        why,
        `the ratings are shuffled once; each epoch takes their batches of ${BATCH_RATINGS} in another order`,
      ],
    };
  }
  const columnBytes = factorBytes(columnCount, sgdFeatures(params));
  const inCache = Math.ceil(columnBytes / SEGMENT_BYTES);
  const columnBands = Math.min(columnCount, Math.max(LEAST_BANDS, 2 * parallelism, inCache));
  const inBands = ratings > blockLimit.ratings;
  const rowBands = Math.min(
    rowCount,
    kind === 'wavefront' ? parallelism : Math.max(LEAST_BANDS, 2 * parallelism, bandsOfBlocks(ratings)),
  );
  const grid =
    `${rowBands} x ${columnBands} blocks: ` +
    (kind === 'wavefront'
      ? 'a band of rows for each worker'
      : 'at least twice as many bands of rows as workers') +
    `; bands of columns (${formatBytes(columnBytes)} in all) whose vectors fit a core's own cache, 1 MiB`;
  return {
    ...common,
    rowBands,
    columnBands,
    ...(inBands ? { inBands } : {}),
    reasons: [
      why,
      `${rows} are the rows: there are more of them, and their vectors are read in sequence`,
      grid,
    ],
  };
}

/**
 * Largest number of ratings of a band, relative to the average. Bands end at whole rows, so they differ
 * slightly.
 */
const UNEQUAL = 1.05;

/** The fewest bands of rows whose ratings each fit into one block; 1 if all ratings do. */
export function bandsOfBlocks(ratings: number): number {
  return ratings > blockLimit.ratings ? Math.ceil((UNEQUAL * ratings) / blockLimit.ratings) : 1;
}

/**
 * The reason against a schedule that needs more ratings in a block than a block can hold; undefined if it
 * does not.
 */
export function beyondBlock({ inBands, rowBands }: SgdSchedule, ratings: number): string | undefined {
  const each = inBands ? Math.ceil(ratings / rowBands) : ratings;
  return each > blockLimit.ratings
    ? `needs ${formatCount(each)} ratings in one block, and a block has at most ` +
        `${formatCount(blockLimit.ratings)}`
    : undefined;
}
