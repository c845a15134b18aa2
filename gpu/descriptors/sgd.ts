import type { GpuFeature, KernelDescriptor } from '../kernel.ts';
import { strideOf } from '../resources.ts';
import { range } from './unrolled.ts';

export type SgdTilesParams = {
  /** With biases two more than the rank. */
  readonly features: number;
  readonly precision: 'f32' | 'f16';
  /** Columns that a tile holds. */
  readonly places: number;
  readonly threads: number;
  /** Threads that step one rating together: a power of two, at most a subgroup's; 1 wants no subgroups. */
  readonly lanes: number;
  readonly biases: boolean;
  /** AdaGrad. */
  readonly adaptive: boolean;
};

/** Ratings that a team takes at a time, about. */
const TILE_BATCH = 1024;

/** Batches that every tile is cut in, the largest of so many ratings: the same for all, and as many for each team. */
export function tileBatches(largest: number, { threads, lanes }: Pick<SgdTilesParams, 'threads' | 'lanes'>): number {
  const teams = threads / lanes;
  return teams * Math.max(1, Math.ceil(largest / (teams * TILE_BATCH)));
}

/** Features of one 16-byte piece of a row. */
function featuresAPiece(precision: 'f32' | 'f16'): number {
  return precision === 'f16' ? 8 : 4;
}

/** Bytes of workgroup memory that a column takes. */
export function placeBytes(features: number, precision: 'f32' | 'f16', adaptive: boolean): number {
  return strideOf(features) * (precision === 'f16' ? 2 : 4) + (adaptive ? 4 : 0);
}

/** How a kernel steps factors: what sgd-tiles and sgd-list share. */
type SgdStepParams = Pick<SgdTilesParams, 'features' | 'precision' | 'threads' | 'lanes' | 'biases' | 'adaptive'>;

function stepValues({ features, precision, threads, lanes, biases, adaptive }: SgdStepParams) {
  const perRow = strideOf(features) / featuresAPiece(precision);
  const half = precision === 'f16';
  const pieces = range(Math.ceil(perRow / lanes)).map((at) => {
    const unpack = (source: string, part: number) => {
      const [a, b] = part === 0 ? ['x', 'y'] : ['z', 'w'];
      return half ? `vec4f(unpack2x16float(${source}_${at}.${a}), unpack2x16float(${source}_${at}.${b}))` : `${source}_${at}`;
    };
    const parts = range(half ? 2 : 1).map((part) => ({ vector: (half ? 2 : 1) * at + part, unpack_x: unpack('x', part), unpack_y: unpack('y', part) }));
    const pack = (source: string) => {
      const [low, high] = parts.map(({ vector }) => `${source}_${vector}`);
      return half ? `vec4<u32>(pack2x16float(${low}.xy), pack2x16float(${low}.zw), pack2x16float(${high}.xy), pack2x16float(${high}.zw))` : low;
    };
    return { at, first: at * lanes, guarded: (at + 1) * lanes > perRow, parts, pack_p: pack('p'), pack_n: pack('n') };
  });
  return {
    FEATURES: features,
    PIECES: perRow,
    THREADS: threads,
    LANES: lanes,
    BIASES: biases,
    ADAPTIVE: adaptive,
    stored: half ? 'vec4<u32>' : 'vec4f',
    pieces,
    vectors: range(pieces.length * (half ? 2 : 1)),
    distances: range(Math.log2(lanes)).map((bit) => 2 ** bit),
  };
}

/** What a team of so many threads needs of the adapter. */
function teamNeeds(lanes: number): readonly GpuFeature[] {
  return lanes === 1 ? [] : lanes <= 4 ? ['quads'] : ['subgroups'];
}

/**
 * An epoch of SGD, a workgroup a tile of columns. Every rating is stepped once; teams of a workgroup may overwrite each other's step of a
 * column, those of different workgroups each other's of a row (Hogwild!).
 */
export const sgdTilesKernel: KernelDescriptor<SgdTilesParams> = {
  name: 'sgd-tiles',
  bindings: [
    { name: 'starts', access: 'read' },
    { name: 'ratings', access: 'read' },
    { name: 'columns', access: 'read' },
    { name: 'row_factors', access: 'read_write' },
    { name: 'column_factors', access: 'read_write' },
    { name: 'row_sums', access: 'read_write' },
    { name: 'column_sums', access: 'read_write' },
  ],
  uniforms: [
    { name: 'tiles', type: 'u32' },
    { name: 'rate', type: 'f32' },
    { name: 'row_lambda', type: 'f32' },
    { name: 'column_lambda', type: 'f32' },
    { name: 'batches', type: 'u32' },
    { name: 'multiplier', type: 'u32' },
    { name: 'offset', type: 'u32' },
  ],
  needs: ({ lanes }) => teamNeeds(lanes),
  values: (params) => ({ ...stepValues(params), PLACES: params.places }),
  workgroup: ({ features, precision, places, threads, adaptive }) => ({ threads, bytes: places * placeBytes(features, precision, adaptive) }),
};

/** SGD on the batches [first_batch, last_batch) of `order` of a list of ratings; teams of all workgroups share them out (Hogwild!). */
export const sgdListKernel: KernelDescriptor<SgdStepParams> = {
  name: 'sgd-list',
  bindings: [
    { name: 'rows', access: 'read' },
    { name: 'columns', access: 'read' },
    { name: 'values', access: 'read' },
    { name: 'order', access: 'read' },
    { name: 'row_factors', access: 'read_write' },
    { name: 'column_factors', access: 'read_write' },
    { name: 'row_sums', access: 'read_write' },
    { name: 'column_sums', access: 'read_write' },
  ],
  uniforms: [
    { name: 'ratings', type: 'u32' },
    { name: 'first_batch', type: 'u32' },
    { name: 'last_batch', type: 'u32' },
    { name: 'batch', type: 'u32' },
    { name: 'rate', type: 'f32' },
    { name: 'row_lambda', type: 'f32' },
    { name: 'column_lambda', type: 'f32' },
  ],
  needs: ({ lanes }) => teamNeeds(lanes),
  values: stepValues,
  workgroup: ({ threads }) => ({ threads, bytes: 0 }),
};

/** Tiles that ratings can be dealt to. */
export const MOST_TILES = 2048;

/** Rows of a chunk that is dealt by one workgroup. */
export const TILE_CHUNK_ROWS = 64;

const dealing = {
  uniforms: [
    { name: 'rows', type: 'u32' },
    { name: 'tiles', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS: 256, CHUNK: TILE_CHUNK_ROWS, MOST_TILES }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_TILES }),
} as const;

/** Counts the ratings of each chunk of rows for each tile: `counts` u32[chunks * tiles]. */
export const sgdTileCountKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-tile-count',
  bindings: [
    { name: 'offsets', access: 'read' },
    { name: 'indices', access: 'read' },
    { name: 'places', access: 'read' },
    { name: 'counts', access: 'read_write' },
  ],
  ...dealing,
};

/** Deals the ratings to the tiles, where they stay sorted by row. */
export const sgdTileScatterKernel: KernelDescriptor<Record<string, never>> = {
  name: 'sgd-tile-scatter',
  bindings: [
    { name: 'offsets', access: 'read' },
    { name: 'indices', access: 'read' },
    { name: 'values', access: 'read' },
    { name: 'places', access: 'read' },
    { name: 'starts', access: 'read' },
    { name: 'ratings', access: 'read_write' },
  ],
  ...dealing,
};
