import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { DataPart, DataSet } from '../../engine/plan/stages.ts';
import { HOST } from '../../engine/plan/place.ts';
import { passedName } from '../../engine/run/exchanges/pass.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { blockBytes } from '../planner/sizes.ts';
import { evenRanges } from '../ratings/row-ranges.ts';
import { steppedBytes } from './bytes.ts';
import type { SgdParams } from './params.ts';
import { staysOnDevice } from './schedules/blocks-schedule.ts';
import { BATCH_RATINGS, type SgdSchedule } from './schedules/schedule.ts';

/**
 * The data sets of a run of SGD.
 *
 *     rows, columns           factors of the side with more rows, and of the other; with AdaGrad row-sums, column-sums
 *     ratings                 R by row, on the scale of its deviation, for errors and for GPUs that lay it out themselves
 *     blocks                  R cut by a grid, in row-major order
 *     list, lists             R, or each block, shuffled (Hogwild!); order, orders: in which an epoch visits the batches of that
 *     tests                   the validation set: whole, or cut as R is
 *     row-counts, column-counts   ratings of each row and column, as blocks without ratings
 *
 * One device holds all. Ratings that no block holds, and the rows' factors beside them, are in bands. By
 * blocks on devices, a band of rows, or several, is on each of them. Segments of columns, as wide as the
 * widest, lie on all of them and are stepped by turns; on their way they are passed-columns,
 * passed-column-sums. Where blocks are staged for want of room, segments lie in host memory.
 *
 *
 */
export function sgdDataSets(
  profile: RatingsProfile,
  params: SgdParams,
  schedule: SgdSchedule,
  compute: readonly DeviceInfo[],
  host: DeviceInfo,
): DataSet[] {
  const { users, items } = profile;
  const { seed } = params;
  const features = params.rank + (params.biases ? 2 : 0);
  const counts = { rows: Math.max(users, items), columns: Math.min(users, items) };
  const adaptive = params.rate === 'adagrad';
  const { columnBands, deviceBlocks } = schedule;
  const segments = deviceBlocks ? columnBands : 1;
  const bands = evenRanges(counts.rows, rowPartsOf(schedule)).map(({ from, to }) => to - from);
  const width = deviceBlocks ? deviceBlocks.width : counts.columns;
  const stays = staysOnDevice(schedule);
  const placeOf = (r: number) => compute[deviceOfBand(schedule, r)].place;
  const rowParts = bands.map((rows, r): DataPart => ({ rows, at: [stays.rows ? placeOf(r) : HOST] }));
  const columnPlaces = stays.columns ? compute.map(({ place }) => place) : [HOST];
  const columnParts = Array.from({ length: segments }, (): DataPart => ({ rows: width, at: columnPlaces }));
  const turns =
    columnPlaces.length > 1 ? { turns: { seed, ...(deviceBlocks?.stays ? { stays: true } : {}) } } : {};
  const half = schedule.precision === 'f16' ? { half: true } : {};
  const matrix = (name: string, parts: readonly DataPart[], by: 'row' | 'column'): DataSet => ({
    name,
    layout: 'factors',
    columns: features,
    contents: 'any',
    by,
    ...half,
    ...(by === 'column' ? turns : {}),
    parts,
  });
  const sums = (name: string, parts: readonly DataPart[], by: 'row' | 'column'): DataSet => ({
    name,
    layout: 'factors',
    columns: 1,
    packed: true,
    by,
    ...(by === 'column' ? turns : {}),
    parts,
  });
  const onTheWay = (set: DataSet): DataSet => ({
    name: passedName(set.name),
    layout: 'factors',
    columns: set.columns ?? 1,
    derived: true,
    by: 'column',
    ...(set.half ? half : {}),
    parts: columnParts.map(({ rows }) => ({ rows, at: [HOST] })),
  });
  const keys = (name: string, parts: readonly DataPart[]): DataSet => ({
    name,
    layout: 'key-hashes',
    given: true,
    parts: parts.map(({ rows }) => ({ rows, bytes: 8 * rows, at: [HOST] })),
  });
  const places = (r: number, resident: boolean) => (resident ? [HOST, placeOf(r)] : [HOST]);
  const countsOf = (name: string, parts: readonly DataPart[], by: 'row' | 'column'): DataSet => ({
    name,
    layout: 'rating-block',
    given: true,
    by,
    parts: parts.map(({ rows }, part) => ({
      rows,
      bytes: 4 * (rows + 1),
      at: places(part, deviceBlocks === undefined),
    })),
  });
  const factors = [
    matrix('rows', rowParts, 'row'),
    matrix('columns', columnParts, 'column'),
    ...(adaptive ? [sums('row-sums', rowParts, 'row'), sums('column-sums', columnParts, 'column')] : []),
    keys('row-keys', rowParts),
    keys('column-keys', columnParts),
    countsOf('column-counts', columnParts, 'column'),
  ];
  const passed = factors.filter((set) => set.turns !== undefined).map(onTheWay);
  if (deviceBlocks === undefined)
    return [...factors, ...ratingSets(profile, schedule, bands, compute[0], host)];
  const { resident, steps } = deviceBlocks;
  // A staged block counts as one of the largest.
  const large = resident ? 1 : 1.25;
  const grid = (
    name: string,
    ratings: number,
    part: (ratings: number, rows: number) => Pick<DataPart, 'bytes' | 'deviceBytes'>,
    layout = 'rating-block',
  ): DataSet => {
    const each = Math.min(ratings, Math.ceil((large * ratings) / (bands.length * segments)));
    return {
      name,
      layout,
      given: true,
      by: 'block',
      parts: bands.flatMap((rows, r) =>
        Array.from({ length: segments }, () => ({ rows, ...part(each, rows), at: places(r, resident) })),
      ),
    };
  };
  return [
    ...factors,
    ...passed,
    // No stage reads it, but it lies there beside the blocks that were cut from it.
    ...(segments === 1
      ? []
      : [
          {
            name: 'ratings',
            layout: 'rating-block',
            given: true,
            parts: [{ rows: counts.rows, bytes: blockBytes(counts.rows, profile.ratings), at: [HOST] }],
          } satisfies DataSet,
        ]),
    countsOf('row-counts', rowParts, 'row'),
    grid('blocks', profile.ratings, (ratings, rows) => steppedBytes(rows, ratings, steps)),
    ...(steps === 'hogwild'
      ? [
          grid('lists', profile.ratings, (ratings) => ({ bytes: 12 * ratings }), 'rating-list'),
          {
            name: 'orders',
            layout: 'batch-order',
            by: 'block',
            derived: true,
            parts: bands.flatMap(() =>
              Array.from({ length: segments }, () => ({
                rows: 0,
                bytes: (4 * profile.ratings) / BATCH_RATINGS / (bands.length * segments),
                at: [host.place],
              })),
            ),
          } satisfies DataSet,
        ]
      : []),
    ...(profile.testRatings === undefined
      ? []
      : [grid('tests', profile.testRatings, (ratings, rows) => ({ bytes: blockBytes(rows, ratings) }))]),
  ];
}

/** Parts of the rows' factors: a band on each device, or a band that has a block of its own. */
export function rowPartsOf({ deviceBlocks, inBands, rowBands }: SgdSchedule): number {
  return deviceBlocks || inBands ? rowBands : 1;
}

/** The number of the device on which a band of rows is stepped. */
export function deviceOfBand({ deviceBlocks }: SgdSchedule, band: number): number {
  return deviceBlocks === undefined ? 0 : Math.floor(band / (deviceBlocks.bandsADevice ?? 1));
}

function ratingSets(
  { ratings, testRatings }: RatingsProfile,
  { kind, rowBands, columnBands, tile, precision, workers }: SgdSchedule,
  bands: readonly number[],
  device: DeviceInfo,
  host: DeviceInfo,
): DataSet[] {
  const at = [HOST, device.place];
  const rows = bands.reduce((sum, count) => sum + count, 0);
  const given = (name: string, count: number): DataSet => ({
    name,
    layout: 'rating-block',
    given: true,
    parts: bands.map((own) => ({ rows: own, bytes: blockBytes(own, Math.ceil(count / bands.length)), at })),
  });
  const whole = [
    given('ratings', ratings),
    ...(testRatings === undefined ? [] : [given('tests', testRatings)]),
  ];
  const orders = (name: string, layout: string, bytes: number, home: string, derived: boolean): DataSet => ({
    name,
    layout,
    ...(derived ? { derived } : {}),
    parts: [{ rows: 0, bytes, at: [home] }],
  });
  if (tile !== undefined) return whole;
  if (kind === 'hogwild')
    return [
      ...whole,
      { name: 'list', layout: 'rating-list', given: true, parts: [{ rows, bytes: 12 * ratings, at }] },
      orders('order', 'batch-order', 4 * Math.ceil(ratings / BATCH_RATINGS), host.place, false),
    ];
  if (precision !== undefined && device.ownMemory)
    return [...whole, orders('wave-order', 'wave-order', 4 * workers * columnBands, host.place, true)];
  const blocks = evenRanges(rows, rowBands).flatMap(({ from, to }) =>
    Array.from({ length: columnBands }, (): DataPart => ({
      rows: to - from,
      bytes: blockBytes(to - from, Math.ceil(ratings / (rowBands * columnBands))),
      at,
    })),
  );
  return [...whole, { name: 'blocks', layout: 'rating-block', given: true, by: 'block', parts: blocks }];
}
