import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import type { DataPart, DataSet } from '../../engine/plan/stages.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import { passedName } from '../../engine/run/exchanges/send-rows.ts';
import { type RatingsProfile, blockBytes } from '../planner/sizes.ts';
import type { BlockSize } from '../ratings/ratings.ts';
import { evenRanges } from '../ratings/row-ranges.ts';
import { sgdFeatures, type SgdParams } from './params.ts';
import { staysOnDevice } from './schedules/gpu-schedules.ts';
import { BATCH_RATINGS, type SgdSchedule, sidesOf } from './schedules/schedule.ts';

/**
 * A matrix that an epoch updates. `name`: its data set. `key`: its name in uses of tasks and among trained
 * factors.
 */
export interface SteppedMatrix {
  readonly name: string;
  readonly side: 'row' | 'column';
  readonly key: 'rows' | 'columns' | 'rowSums' | 'columnSums';
  /** The tasks' name for the version that they read, if they write another one. */
  readonly source: string;
}

/** Factors of both sides, then AdaGrad's sums of squared gradients. */
const matrices: readonly SteppedMatrix[] = [
  { name: 'rows', side: 'row', key: 'rows', source: 'sourceRows' },
  { name: 'columns', side: 'column', key: 'columns', source: 'sourceColumns' },
  { name: 'row-sums', side: 'row', key: 'rowSums', source: 'sourceRowSums' },
  { name: 'column-sums', side: 'column', key: 'columnSums', source: 'sourceColumnSums' },
];

export function steppedMatrices(withSums: boolean): readonly SteppedMatrix[] {
  return matrices.slice(0, withSums ? 4 : 2);
}

/** Roles of data sets that exist before the first step. */
export type GivenRole = 'keys' | 'counts' | 'ratings' | 'tests' | 'blocks' | 'list' | 'lists';

export interface SgdDataSet extends DataSet {
  readonly role: GivenRole | 'factors' | 'sums' | 'passed' | 'order';
  readonly side?: 'row' | 'column';
}

/** Sizes of the parts of all data sets: estimated when a plan is made, exact when it is bound to ratings. */
export interface SgdSizes {
  /**
   * Number of rows in each part of the rows' factors, and of columns in each segment (part of the columns).
   */
  readonly rows: readonly number[];
  readonly columns: readonly number[];
  readonly ratings: readonly BlockSize[];
  /** Blocks of a grid, row-major. */
  readonly blocks: readonly BlockSize[];
  readonly tests?: readonly BlockSize[] | undefined;
}

/**
 * Estimated sizes: parts have equal numbers of rows and ratings. A block that is staged (copied to a device
 * for each use) counts as the largest block.
 */
export function estimatedSizes(profile: RatingsProfile, schedule: SgdSchedule): SgdSizes {
  const { ratings, testRatings } = profile;
  const { rowBands, columnBands, deviceBlocks } = schedule;
  const { rowCount: rows, columnCount: columns } = sidesOf(profile);
  const lengths = (parts: number) => evenRanges(rows, parts).map(({ from, to }) => to - from);
  const large = deviceBlocks?.resident === false ? 1.25 : 1;
  const grid = (count: number): BlockSize[] => {
    const each = Math.min(count, Math.ceil((large * count) / (rowBands * columnBands)));
    return lengths(rowBands).flatMap((own) =>
      Array.from({ length: columnBands }, () => ({ rows: own, ratings: each })),
    );
  };
  const bands = lengths(rowPartsOf(schedule));
  const byBand = (count: number) =>
    bands.map((own) => ({ rows: own, ratings: Math.ceil(count / bands.length) }));
  return {
    rows: bands,
    columns: deviceBlocks ? Array.from({ length: columnBands }, () => deviceBlocks.width) : [columns],
    ratings: deviceBlocks ? [{ rows, ratings }] : byBand(ratings),
    // A getter, since only grids have blocks.
    get blocks() {
      return grid(ratings);
    },
    tests: testRatings === undefined ? undefined : (deviceBlocks ? grid : byBand)(testRatings),
  };
}

/**
 * The data sets of a run of SGD.
 *
 *     rows, columns           factors of the side with more rows, and of the other; with AdaGrad row-sums, column-sums
 *     ratings                 R by row, scaled by its deviation, for errors and for GPUs that make the layout
 *                             themselves
 *     blocks                  R cut by a grid, in row-major order
 *     list, lists             R, or each block, shuffled (Hogwild!); order, orders: the order of an epoch's batches
 *     tests                   the validation set: whole, or cut like R
 *     row-counts, column-counts   number of ratings of each row and column, as blocks without ratings
 *
 * A single device has all data. If there are more ratings than a block can hold, ratings and the rows'
 * factors are cut into bands of rows. With blocks on several devices, each device has one or several bands of
 * rows. Segments of columns, all stored as wide as the widest, are on all devices, which take turns in
 * stepping them; while a segment is sent, it is in passed-columns and passed-column-sums. If blocks are
 * staged because memory is short, segments are in host memory. `resident`: the devices' blocks are not
 * staged.
 */
export function sgdDataSets(
  sizes: SgdSizes,
  params: SgdParams,
  schedule: SgdSchedule,
  { compute, host }: PlanDevices,
  resident = schedule.deviceBlocks?.resident,
): SgdDataSet[] {
  const parted = schedule.deviceBlocks !== undefined;
  const placeOf = (band: number) => compute[deviceOfBand(schedule, band)].place;
  const atBlock = (block: number) =>
    parted && !resident ? [HOST] : [HOST, placeOf(Math.floor(block / sizes.columns.length))];
  const beside = parted ? [HOST] : [HOST, placeOf(0)];
  const parts = sideParts(sizes, schedule, { placeOf, places: compute.map(({ place }) => place) });
  const factors = factorSets(parts, params, schedule);
  const keys = (side: 'row' | 'column') =>
    givenSet(
      `${side}-keys`,
      { role: 'keys', side, layout: 'key-hashes' },
      sizes[`${side}s`].map((rows) => ({ rows, bytes: 8 * rows, at: [HOST] })),
    );
  const counts = (side: 'row' | 'column') =>
    givenSet(
      `${side}-counts`,
      { role: 'counts', side, by: side },
      parts[side].map(({ rows }) => ({ rows, bytes: 4 * (rows + 1), at: beside })),
    );
  const ratings = ratedSet('ratings', sizes.ratings, () => beside);
  return [
    ...factors,
    keys('row'),
    keys('column'),
    ...passedSets(factors),
    ...(parted ? [counts('row')] : []),
    // Not needed if tasks read only the blocks that were cut from it.
    ...(parted && sizes.columns.length === 1 ? [] : [ratings]),
    ...steppedSets(sizes, schedule, { device: compute[0], host, atBlock }),
    counts('column'),
    ...(sizes.tests === undefined ? [] : [ratedSet('tests', sizes.tests, atBlock, parted)]),
  ];
}

/** Data sets that an epoch reads: the ratings in the layout of the schedule, and the order of the steps. */
function steppedSets(
  sizes: SgdSizes,
  { kind, tile, precision, workers, columnBands, deviceBlocks }: SgdSchedule,
  {
    device,
    host,
    atBlock,
  }: {
    readonly device: DeviceInfo;
    readonly host: DeviceInfo;
    readonly atBlock: (block: number) => readonly Place[];
  },
): SgdDataSet[] {
  const order = (name: string, bytes: readonly number[], more: Partial<SgdDataSet>): SgdDataSet => ({
    name,
    role: 'order',
    layout: 'batch-order',
    ...more,
    parts: bytes.map((own) => ({ rows: 0, bytes: own, at: [host.place] })),
  });
  const orderOf = (blocks: readonly BlockSize[]) =>
    blocks.map(({ ratings }) => 4 * Math.ceil(ratings / BATCH_RATINGS));
  if (deviceBlocks?.steps === 'tile') return [ratedSet('blocks', sizes.blocks, atBlock, true, true)];
  if (deviceBlocks)
    return [
      ratedSet('blocks', sizes.blocks, atBlock, true),
      ratedSet('lists', sizes.blocks, atBlock, true),
      order('orders', orderOf(sizes.blocks), { derived: true, by: 'block' }),
    ];
  if (tile !== undefined) return [];
  if (kind === 'hogwild')
    return [ratedSet('list', sizes.ratings, atBlock), order('order', orderOf(sizes.ratings), {})];
  if (precision !== undefined && device.ownMemory)
    return [order('wave-order', [4 * workers * columnBands], { derived: true, layout: 'wave-order' })];
  return [ratedSet('blocks', sizes.blocks, atBlock, true)];
}

function givenSet(
  name: string,
  more: Pick<SgdDataSet, 'side' | 'by'> & { readonly role: GivenRole; readonly layout?: string },
  parts: readonly DataPart[],
): SgdDataSet {
  return { name, layout: 'rating-block', given: true, ...more, parts };
}

/** A data set of ratings. `tiles`: devices also keep lists of the ratings of each tile. */
function ratedSet(
  name: 'ratings' | 'tests' | 'blocks' | 'list' | 'lists',
  sizes: readonly BlockSize[],
  at: (block: number) => readonly Place[],
  inGrid = false,
  tiles = false,
): SgdDataSet {
  const isList = name === 'list' || name === 'lists';
  const more = {
    role: name,
    ...(isList ? { layout: 'rating-list' } : {}),
    ...(inGrid ? { by: 'block' as const } : {}),
  };
  return givenSet(
    name,
    more,
    sizes.map(({ rows, ratings }, block) => {
      const bytes = isList ? 12 * ratings : blockBytes(rows, ratings);
      return { rows, bytes, ...(tiles ? { deviceBytes: bytes + 8 * ratings } : {}), at: at(block) };
    }),
  );
}

type SideParts = Readonly<Record<'row' | 'column', readonly DataPart[]>>;

function sideParts(
  { rows, columns }: SgdSizes,
  schedule: SgdSchedule,
  { placeOf, places }: { readonly placeOf: (band: number) => Place; readonly places: readonly Place[] },
): SideParts {
  const stays = staysOnDevice(schedule);
  const width = Math.max(...columns);
  return {
    row: rows.map((own, band) => ({ rows: own, at: [stays.rows ? placeOf(band) : HOST] })),
    column: columns.map(() => ({ rows: width, at: stays.columns ? places : [HOST] })),
  };
}

function factorSets(
  parts: SideParts,
  params: SgdParams,
  { precision, deviceBlocks }: SgdSchedule,
): SgdDataSet[] {
  const { rate, seed } = params;
  const turns =
    parts.column[0].at.length > 1 ? { turns: { seed, ...(deviceBlocks?.stays ? { stays: true } : {}) } } : {};
  const half = precision === 'f16' ? { half: true } : {};
  return steppedMatrices(rate === 'adagrad').map(({ name, side, key }) => ({
    name,
    side,
    layout: 'factors',
    by: side,
    ...(key === 'rows' || key === 'columns'
      ? { role: 'factors', columns: sgdFeatures(params), contents: 'any', ...half }
      : { role: 'sums', columns: 1, packed: true }),
    ...(side === 'column' ? turns : {}),
    parts: parts[side],
  }));
}

/** Data sets in host memory for segments of columns that are being sent from device to device. */
function passedSets(factors: readonly SgdDataSet[]): SgdDataSet[] {
  return factors.flatMap(({ name, columns = 1, half, turns, parts }) =>
    turns === undefined
      ? []
      : [
          {
            name: passedName(name),
            role: 'passed',
            side: 'column',
            layout: 'factors',
            columns,
            derived: true,
            by: 'column',
            ...(half ? { half } : {}),
            parts: parts.map(({ rows }) => ({ rows, at: [HOST] })),
          } satisfies SgdDataSet,
        ],
  );
}

/**
 * Number of parts of the rows' factors: the number of bands, if bands are on several devices or have blocks
 * of their own; else 1.
 */
export function rowPartsOf({ deviceBlocks, inBands, rowBands }: SgdSchedule): number {
  return deviceBlocks || inBands ? rowBands : 1;
}

/** Number of the device that steps a band of rows. */
export function deviceOfBand({ deviceBlocks }: SgdSchedule, band: number): number {
  return deviceBlocks === undefined ? 0 : Math.floor(band / (deviceBlocks.bandsADevice ?? 1));
}
