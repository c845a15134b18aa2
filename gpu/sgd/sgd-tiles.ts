import { CounterRandom } from '../../engine/random.ts';
import { strideOf, type DeviceBlock } from '../device/resources.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';
import {
  type EvenRow,
  evenRow,
  type SgdStepParams,
  steppedFactors,
  stepValues,
  teamNeeds,
} from './sgd-step.ts';

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
  reads: {
    /** Index of each tile's first rating; last, the number of ratings. */
    starts: 'array<u32>',
    /**
     * Each rating has two words. The first is its row. The second has the index of its column within the
     * tile in the lower 16 bits, and the rating minus `level` as float16 in the upper 16 bits.
     */
    ratings: 'array<vec2<u32>>',
    /** The columns of each tile, PLACES numbers for each; 0xffffffff if a tile has fewer columns. */
    columns: 'array<u32>',
  },
  writes: steppedFactors,
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
  bytes: ({ places, ...params }) => places * placeBytes(params),
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

/**
 * Draws an order of an epoch's batches that needs no memory: the i-th batch to process has the number (i *
 * multiplier + offset) mod n. Every batch occurs once, since the multiplier is a prime greater than n, or 1
 * if no such prime is in range.
 */
export function batchOrder(
  mostBatches: number,
  seed: number,
  epoch: number,
): { readonly multiplier: number; readonly offset: number } {
  const random = new CounterRandom(seed, 0x7113).derive(epoch);
  // The limit keeps i * multiplier + offset within 32 bits.
  const largest = Math.min(2 ** 20, Math.floor((2 ** 32 - 2 ** 20) / Math.max(1, mostBatches)));
  const least = mostBatches + 1;
  const offset = random.below(1, 2 ** 20);
  if (largest <= least) return { multiplier: 1, offset };
  for (let candidate = least + random.below(0, largest - least); candidate <= largest; candidate++)
    if (isPrime(candidate)) return { multiplier: candidate, offset };
  for (let candidate = least; candidate <= largest; candidate++)
    if (isPrime(candidate)) return { multiplier: candidate, offset };
  return { multiplier: 1, offset };
}

function isPrime(number: number): boolean {
  if (number < 2) return false;
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}

/** The ratings of a block sorted into tiles (sets of columns), as the kernel sgd-tiles reads them. */
export interface TileLists {
  readonly tiles: number;
  /** Most columns of a tile. */
  readonly places: number;
  /** Ratings of the largest tile. */
  readonly largest: number;
  readonly starts: GPUBuffer;
  readonly ratings: GPUBuffer;
  readonly columns: GPUBuffer;
}

/** In `columns`: marks places of tiles that have fewer columns than the largest. */
const NO_COLUMN = 0xffff_ffff;

/**
 * Assigns the columns of a block to tiles, one for each workgroup of the kernel sgd-tiles, and sorts the
 * ratings into the tiles of their columns. The result is cached with the block, by the number of tiles and
 * `level`.
 *
 * Columns are assigned by descending number of ratings: one to each tile in ascending order, then one to each
 * in descending order, and so on. So all tiles have about the same numbers of columns and of ratings. Within
 * a tile, ratings are sorted by row; the order within a row is undefined. A rating is stored in float16 as
 * its difference to `level`.
 */
export async function tileLists(
  gpu: Gpu,
  block: DeviceBlock,
  columnCount: number,
  tiles: number,
  level: number,
): Promise<TileLists> {
  const key = `${tiles} tiles at ${level}`;
  const known = block.prepared.get(key) as TileLists | undefined;
  if (known !== undefined) return known;
  if (tiles > MOST_TILES) throw new Error(`ratings are dealt to at most ${MOST_TILES} tiles, not ${tiles}`);
  const dealt = dealColumns(await columnCounts(gpu, block, columnCount), tiles);
  const lists: TileLists = {
    tiles,
    places: dealt.places,
    largest: dealt.largest,
    starts: await gpu.bufferOf(dealt.starts, 'tile starts'),
    ratings: await gpu.buffer(8 * block.ratings, 'ratings by tile'),
    columns: await gpu.bufferOf(dealt.columns, 'columns by tile'),
  };
  await dealRatings(gpu, block, dealt, lists, level);
  block.prepared.set(key, lists);
  return lists;
}

interface DealtColumns {
  readonly places: number;
  readonly largest: number;
  /** Index of each tile's first rating; last, the number of all ratings. */
  readonly starts: Uint32Array;
  /** The columns of each tile, `places` numbers for each tile. */
  readonly columns: Uint32Array;
  /** For each column its tile, in the lower 16 bits, and its index within the tile, in the upper 16 bits. */
  readonly placeOf: Uint32Array;
}

async function columnCounts(
  gpu: Gpu,
  { indices, ratings }: DeviceBlock,
  columnCount: number,
): Promise<Uint32Array> {
  const counts = new Uint32Array(columnCount);
  const table = await gpu.bufferOf(counts, 'ratings by column');
  try {
    const kernel = await gpu.compile(sgdColumnCountKernel, {});
    await gpu
      .pass('count by column')
      .dispatch(kernel, { indices, counts: table }, { ratings }, Math.ceil(ratings / RATINGS))
      .submit();
    await gpu.download(table, counts);
    return counts;
  } finally {
    table.destroy();
  }
}

/** Assigns columns to tiles by their numbers of ratings: see tileLists. */
export function dealColumns(counts: Uint32Array, tiles: number): DealtColumns {
  const columnCount = counts.length;
  const order = Uint32Array.from({ length: columnCount }, (_, column) => column).sort(
    (left, right) => counts[right] - counts[left] || left - right,
  );
  const places = Math.ceil(columnCount / tiles);
  const columns = new Uint32Array(tiles * places).fill(NO_COLUMN);
  const placeOf = new Uint32Array(columnCount);
  const totals = new Uint32Array(tiles);
  order.forEach((column, at) => {
    const place = Math.floor(at / tiles);
    const across = at % tiles;
    const tile = place % 2 === 0 ? across : tiles - 1 - across;
    columns[tile * places + place] = column;
    placeOf[column] = tile | (place << 16);
    totals[tile] += counts[column];
  });
  const starts = new Uint32Array(tiles + 1);
  for (let tile = 0; tile < tiles; tile++) starts[tile + 1] = starts[tile] + totals[tile];
  return {
    places,
    largest: totals.reduce((most, total) => Math.max(most, total), 0),
    starts,
    columns,
    placeOf,
  };
}

/**
 * Copies the ratings to their tiles, in three steps: the GPU counts the ratings of each chunk of rows in each
 * tile, the host adds the counts up to start indices, and the GPU copies the ratings to these indices.
 */
async function dealRatings(
  gpu: Gpu,
  block: DeviceBlock,
  { starts, placeOf }: DealtColumns,
  { tiles, ratings }: TileLists,
  level: number,
): Promise<void> {
  const chunks = Math.ceil(block.rows / TILE_CHUNK_ROWS);
  const places = await gpu.bufferOf(placeOf, 'places of columns');
  const table = await gpu.buffer(4 * chunks * tiles, 'ratings by chunk and tile');
  try {
    const bindings = { offsets: block.rowPointers, indices: block.indices, values: block.values, places };
    const uniforms = { rows: block.rows, tiles };
    const count = await gpu.compile(sgdTileCountKernel, {});
    await gpu
      .pass('count by tile')
      .dispatch(count, { ...bindings, counts: table }, uniforms, chunks)
      .submit();
    const counts = new Uint32Array(chunks * tiles);
    await gpu.download(table, counts);
    const next = starts.slice(0, tiles);
    for (let at = 0; at < counts.length; at++) {
      const tile = at % tiles;
      const own = counts[at];
      counts[at] = next[tile];
      next[tile] += own;
    }
    await gpu.upload(table, counts);
    const scatter = await gpu.compile(sgdTileScatterKernel, {});
    await gpu
      .pass('deal to tiles')
      .dispatch(scatter, { ...bindings, starts: table, ratings }, { ...uniforms, level }, chunks)
      .submit();
  } finally {
    places.destroy();
    table.destroy();
  }
}

const THREADS = 256;
const RATINGS = 64 * THREADS;

/** Counts the ratings of each column. `counts` must be 0 before. */
export const sgdColumnCountKernel = kernelOf<Record<string, never>>()({
  name: 'sgd-column-count',
  reads: { indices: 'array<u32>' },
  writes: { counts: 'array<atomic<u32>>' },
  uniforms: { ratings: 'u32' },
  values: () => ({ THREADS, RATINGS }),
});

const MOST_TILES = 4096;

/**
 * To sort ratings into tiles (sets of columns), each workgroup takes a chunk of this number of adjacent rows.
 */
const TILE_CHUNK_ROWS = 64;

/**
 * First step of sorting ratings into tiles, which are sets of columns: counts the ratings of each chunk of
 * rows in each tile. Output: `counts` u32[chunks * tiles].
 */
export const sgdTileCountKernel = kernelOf<Record<string, never>>()({
  name: 'sgd-tile-count',
  reads: {
    offsets: 'array<i32>',
    indices: 'array<u32>',
    /**
     * For each column its tile, in the lower 16 bits, and its index within the tile, in the upper 16 bits.
     */
    places: 'array<u32>',
  },
  writes: { counts: 'array<u32>' },
  uniforms: { rows: 'u32', tiles: 'u32' },
  values: () => ({ THREADS: 256, CHUNK: TILE_CHUNK_ROWS, MOST_TILES }),
  bytes: 4 * MOST_TILES,
});

/**
 * Second step of sorting ratings into tiles, which are sets of columns: copies each rating to its tile, where
 * ratings stay sorted by row.
 */
export const sgdTileScatterKernel = kernelOf<Record<string, never>>()({
  ...sgdTileCountKernel,
  name: 'sgd-tile-scatter',
  reads: {
    offsets: 'array<i32>',
    indices: 'array<u32>',
    values: 'array<f32>',
    places: 'array<u32>',
    /** For each chunk of rows and tile, the index of its first rating in the output. */
    starts: 'array<u32>',
  },
  writes: { ratings: 'array<vec2<u32>>' },
  uniforms: { ...sgdTileCountKernel.uniforms, level: 'f32' },
});
