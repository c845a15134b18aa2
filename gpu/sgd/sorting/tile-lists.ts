import type { DeviceBlock } from '../../device/resources.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';

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

/** Number of ratings of each column. */
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
      .dispatch(kernel, { indices, counts: table }, { ratings }, sgdColumnCountWorkgroups(ratings))
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
/** Ratings of a workgroup. */
const RATINGS = 64 * THREADS;

/** Counts the ratings of each column. `counts` must be 0 before. */
export const sgdColumnCountKernel = kernelOf<Record<string, never>>()({
  name: 'sgd-column-count',
  bindings: [...reads({ indices: 'array<u32>' }), ...writes({ counts: 'array<atomic<u32>>' })],
  uniforms: { ratings: 'u32' },
  values: () => ({ THREADS, RATINGS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});

function sgdColumnCountWorkgroups(ratings: number): number {
  return Math.ceil(ratings / RATINGS);
}

/** Largest number of tiles. */
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
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      /**
       * For each column its tile, in the lower 16 bits, and its index within the tile, in the upper 16 bits.
       */
      places: 'array<u32>',
    }),
    ...writes({ counts: 'array<u32>' }),
  ],
  uniforms: {
    rows: 'u32',
    tiles: 'u32',
  },
  values: () => ({ THREADS: 256, CHUNK: TILE_CHUNK_ROWS, MOST_TILES }),
  workgroup: () => ({ threads: 256, bytes: 4 * MOST_TILES }),
  samples: [{}],
});

/**
 * Second step of sorting ratings into tiles, which are sets of columns: copies each rating to its tile, where
 * ratings stay sorted by row.
 */
export const sgdTileScatterKernel = kernelOf<Record<string, never>>()({
  ...sgdTileCountKernel,
  name: 'sgd-tile-scatter',
  bindings: [
    ...reads({
      offsets: 'array<i32>',
      indices: 'array<u32>',
      values: 'array<f32>',
      places: 'array<u32>',
      /** For each chunk of rows and tile, the index of its first rating in the output. */
      starts: 'array<u32>',
    }),
    ...writes({ ratings: 'array<vec2<u32>>' }),
  ],
  uniforms: { ...sgdTileCountKernel.uniforms, level: 'f32' },
  samples: [{}],
});
