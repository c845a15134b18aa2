import { strideOf } from '../device/resources.ts';
import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { type EvenRow, evenRow, type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

export type SgdTilesParams = SgdStepParams & {
  /** Most columns of a tile, the set of columns of a workgroup. */
  readonly places: number;
  /**
   * Precision in which steps are computed. f16, possible if factors are stored in float16, computes two
   * features at once.
   */
  readonly arithmetic: 'f32' | 'f16';
};

/**
 * Number of ratings that a team (LANES threads) loads at a time. The shader repeats its code for each of
 * them.
 */
const GROUP = 4;

/**
 * A team loads several ratings at a time only if a thread has at most this number of 16-byte pieces of a row.
 * With more pieces, the code that is repeated for each rating would be too long.
 */
const MOST_PIECES = 8;

/**
 * The ratings of a tile (set of columns) are processed in batches. TILE_BATCH: most ratings of a batch.
 * LEAST_BATCH: batches become smaller than TILE_BATCH if the factors of all rows do not fit the GPU's cache,
 * but not smaller than this.
 */
const TILE_BATCH = 1024;
const LEAST_BATCH = 32;

/**
 * Most bytes of the factors of the rows that are in use at the same time. All workgroups process about the
 * same range of rows at a time, so factors that one of them has loaded are still in the GPU's cache for the
 * others.
 */
const ROWS_IN_USE = 32 << 20;

/**
 * Number of batches into which the ratings of each tile (set of columns) are cut: the same for all tiles, and
 * a multiple of the number of teams of a workgroup. `largest`: ratings of the largest tile; `rowBytes`: bytes
 * of the factors of all rows.
 */
export function tileBatches(
  largest: number,
  rowBytes: number,
  { threads, lanes }: Pick<SgdTilesParams, 'threads' | 'lanes'>,
): number {
  const teams = threads / lanes;
  const inCache = Math.min(Math.ceil(rowBytes / ROWS_IN_USE), Math.floor(largest / (teams * LEAST_BATCH)));
  return teams * Math.max(1, Math.ceil(largest / (teams * TILE_BATCH)), inCache);
}

/**
 * Bytes of workgroup memory for the factors of one column, with AdaGrad also for its sum of squared
 * gradients.
 */
function placeBytes({
  features,
  precision,
  lanes,
  adaptive,
}: Pick<SgdStepParams, 'features' | 'precision' | 'lanes' | 'adaptive'>): number {
  const even = evenOf({ features, precision, lanes });
  return (
    (even ? 16 * even.pieces + 4 * even.tail : strideOf(features) * (precision === 'f16' ? 2 : 4)) +
    (adaptive ? 4 : 0)
  );
}

function evenOf({
  features,
  precision,
  lanes,
}: Pick<SgdStepParams, 'features' | 'precision' | 'lanes'>): EvenRow | undefined {
  return precision === 'f16' ? evenRow(features, lanes) : undefined;
}

/** Template values. In one turn of the shader's loop, a team processes GROUP ratings. */
function tileValues({ arithmetic, places, ...params }: SgdTilesParams) {
  const step = stepValues(params, arithmetic, evenOf(params));
  const group =
    step.pieces.length <= MOST_PIECES && (params.lanes >= GROUP || arithmetic === 'f16') ? GROUP : 1;
  const spread = group > 1 && params.lanes >= GROUP;
  const read = (at: number) =>
    spread
      ? `quadBroadcast(${at < group ? 'a' : 'b'}_0, ${at % group}u)`
      : `${at < group ? 'a' : 'b'}_${at % group}`;
  return {
    ...step,
    PLACES: places,
    GROUP: group,
    SPREAD: spread,
    slots: range(spread ? 1 : group),
    group_ratings: range(group + 1).map((at) => ({ at, read: read(at) })),
    group_steps: range(group).map((at) => ({ at, next: at + 1 })),
  };
}

/**
 * One epoch of SGD: every rating updates the factors of its row and column once. Each workgroup has one tile,
 * a set of columns, and keeps their factors in workgroup memory. There are no locks (Hogwild!): teams of a
 * workgroup may overwrite each other's updates of a column, and teams of different workgroups each other's
 * updates of a row.
 */
export const sgdTilesKernel = kernelOf<SgdTilesParams>()({
  name: 'sgd-tiles',
  bindings: [
    ...reads({
      /** Index of each tile's first rating; last, the number of ratings. */
      starts: 'array<u32>',
      /**
       * Each rating has two words. The first is its row. The second has the index of its column within the
       * tile in the lower 16 bits, and the rating minus `level` as float16 in the upper 16 bits.
       */
      ratings: 'array<vec2<u32>>',
      /** The columns of each tile, PLACES numbers for each; 0xffffffff if a tile has fewer columns. */
      columns: 'array<u32>',
    }),
    ...writes({
      row_factors: 'array<{{ stored }}>',
      column_factors: 'array<{{ stored }}>',
      row_sums: 'array<f32>',
      column_sums: 'array<f32>',
    }),
  ],
  uniforms: {
    tiles: 'u32',
    rate: 'f32',
    row_lambda: 'f32',
    column_lambda: 'f32',
    batches: 'u32',
    multiplier: 'u32',
    offset: 'u32',
    level: 'f32',
  },
  needs: ({ lanes, arithmetic }) => [
    ...teamNeeds(lanes),
    ...(arithmetic === 'f16' ? (['f16'] as const) : []),
  ],
  values: tileValues,
  workgroup: ({ places, threads, ...params }) => ({ threads, bytes: places * placeBytes(params) }),
  samples: [
    {
      features: 34,
      precision: 'f16',
      places: 20,
      threads: 256,
      lanes: 4,
      biases: true,
      adaptive: true,
      arithmetic: 'f32',
    },
    {
      features: 34,
      precision: 'f16',
      places: 20,
      threads: 256,
      lanes: 4,
      biases: true,
      adaptive: true,
      arithmetic: 'f16',
    },
    {
      features: 128,
      precision: 'f16',
      places: 20,
      threads: 512,
      lanes: 4,
      biases: false,
      adaptive: false,
      arithmetic: 'f16',
    },
    {
      features: 128,
      precision: 'f32',
      places: 20,
      threads: 64,
      lanes: 1,
      biases: false,
      adaptive: false,
      arithmetic: 'f32',
    },
  ],
});
