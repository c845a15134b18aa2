import { strideOf } from '../device/resources.ts';
import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { type EvenRow, evenRow, type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

export type SgdTilesParams = SgdStepParams & {
  /** Columns of a tile. */
  readonly places: number;
  /** f16 computes two features at once, in the precision of storage. */
  readonly arithmetic: 'f32' | 'f16';
};

/** Ratings that a team loads together. The shader repeats its code for each of them. */
const GROUP = 4;

/** Up to this number of pieces of a row in a thread, the shader repeats its code for each piece. */
const MOST_PIECES = 8;

/** Most ratings of a batch. LEAST_BATCH: the fewest, for blocks whose rows do not all fit the GPU's cache. */
const TILE_BATCH = 1024;
const LEAST_BATCH = 32;

/**
 * Most bytes of the rows that are used at the same time. A row with ratings in many tiles is then still in
 * the cache when most of these tiles read it.
 */
const ROWS_IN_USE = 32 << 20;

/**
 * Number of batches of a tile: the same for all tiles, and a multiple of the number of teams. `largest`:
 * ratings of the largest tile; `rowBytes`: bytes of all rows.
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

/** Bytes of workgroup memory for one column. */
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

/** Template values. The shader's loop steps a whole group of ratings. */
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
 * One epoch of SGD, in which every rating is stepped once. A workgroup processes one tile of columns. There
 * are no locks (Hogwild!): teams of one workgroup may overwrite each other's step of a column, and teams of
 * different workgroups each other's step of a row.
 */
export const sgdTilesKernel = kernelOf<SgdTilesParams>()({
  name: 'sgd-tiles',
  bindings: [
    ...reads({
      /** Starts of the tiles. */
      starts: 'array<u32>',
      /**
       * Each rating has two words. First word: its row. Second word: the column's place in the tile (lower 16
       * bits), and the rating minus `level` as float16 (upper 16 bits).
       */
      ratings: 'array<vec2<u32>>',
      /** Columns by tile and place; 0xffffffff for a place without a column. */
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
