import type { DeviceMatrix } from '../device/resources.ts';
import { paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { hasRatingRow, type TensorPlan, tensorPlan } from '../equations/tensor-plan.ts';
import type { GpuFeature } from '../webgpu/gpu-info.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { range, kernelOf } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';

/**
 * Number of ratings that are copied to workgroup memory at a time (a bin): sixteen groups of threads copy
 * four ratings each.
 */
const BIN = 64;

/**
 * Workgroup memory has a line of numbers for each feature of θ: the feature in BIN rows of θ, in 8 bits. This
 * is the distance between two lines in groups of 16 bytes. It is odd to avoid bank conflicts.
 */
const ROW_VECTORS = BIN / 16 + 1;

/**
 * Size of a 16 x 16 tile of A in workgroup memory, in groups of four numbers, with padding; see
 * normal-equations-tensor.ts.
 */
const TILE_VECTORS = 80;

/**
 * Smallest and largest rank of the 8-bit kernels. The number of threads of a workgroup grows with the rank.
 * At rank 33 it reaches 64, one for each rating that is loaded at a time; 256 threads, one for each row of A,
 * are the most that are used.
 */
export const INT8_RANKS = { least: 33, most: 256 } as const;

/**
 * Most ratings of one part of a row: the sum of this number of products of two 8-bit numbers fits 32 bits.
 */
export const INT8_PART = 2 ** 17;

/**
 * Largest rating after scaling and rounding. Ratings are stored in 16 bits as two 8-bit digits. The rest of
 * the 16-bit range is left for subtracting biases.
 */
const LARGEST_NUMBER = 8192;

/**
 * The scale of ratings: a power of two by which they are multiplied before they are rounded to whole numbers.
 */
export function int8Scale(largestRating: number): number {
  return 2 ** Math.floor(Math.log2(LARGEST_NUMBER / Math.max(largestRating, 2 ** -20)));
}

/** Groups of 16 bytes in a row of θ in 8 bits (16 features each), rounded up to an even number. */
export function int8Pieces(rank: number): number {
  return 2 * Math.ceil(tilesOf(rank) / 2);
}

/** Bytes of the 8-bit copy of a matrix with `rows` rows, including one more row of zeros. */
export function int8Bytes(rows: number, rank: number): number {
  return 16 * int8Pieces(rank) * (rows + 1);
}

/**
 * Number of subgroups (32 threads) of a workgroup. A thread loads 16 features of a row of θ, and the
 * workgroup loads sixteen rows at the same time.
 */
function int8Subgroups(shape: Int8Shape): number {
  return lanesOf(shape) / 2;
}

/**
 * Ranks above 128, more than eight tiles: up to these ranks, a row of θ is loaded by an even number of
 * threads, so that no thread is idle and workgroups have five or six subgroups. At larger ranks it is loaded
 * by a power of two threads, with eight subgroups: there, fewer subgroups would need more registers each for
 * tiles of A, so that fewer workgroups could run at the same time. `ofRows`: for the fused kernel if it
 * solves with A in float16; `ofSums`: for the other 8-bit kernels. Measured on an H200.
 */
export const INT8_EVEN_LANES = { ofSums: 168, ofRows: 152 } as const;

/** Number of threads that together load one row of θ. */
function lanesOf({ rank, halfA = false }: Int8Shape): number {
  const tiles = tilesOf(rank);
  return tiles > 8 && rank <= (halfA ? INT8_EVEN_LANES.ofRows : INT8_EVEN_LANES.ofSums)
    ? 2 * Math.ceil(tiles / 2)
    : 2 ** Math.ceil(Math.log2(tiles));
}

const plans = new Map<string, TensorPlan>();

function planOf(rank: number, room: number, subgroups: number): TensorPlan {
  const key = `${rank} ${room} ${subgroups}`;
  const plan = plans.get(key) ?? tensorPlan(rank, room, subgroups);
  plans.set(key, plan);
  return plan;
}

/**
 * Size of a tile in workgroup memory, in groups of 16 bytes: the lines of 16 features of θ. A tile has
 * padding, so that threads that write lines of different tiles use different banks.
 */
function tileVectorsOf(lanes: number): number {
  return 16 * ROW_VECTORS + Math.max(1, 8 / lanes);
}

/** Number of bins that the ring buffers of columns and ratings hold. */
const RING_BINS = 3;

/** Groups of 16 bytes that one bin takes in a ring buffer. */
const RING_VECTORS = BIN / 4;

/**
 * Position of a ring buffer in workgroup memory, in groups of 16 bytes: `first` is its start, `bin` the
 * distance between its bins (the ratings that are loaded at a time), and `four` the distance between groups
 * of four ratings in a bin.
 */
interface Ring {
  readonly first: number;
  readonly bin: number;
  readonly four: number;
}

interface Int8Plan {
  /** Size of the workgroup memory, in groups of 16 bytes. */
  readonly staged: number;
  /**
   * Index at which the lines of θ (one for each feature) start, in groups of 16 bytes. If ratings have lines
   * of their own, those come before it.
   */
  readonly front: number;
  readonly columns: Ring;
  readonly rated: Ring;
  readonly plan: TensorPlan;
}

/**
 * Parameters that determine the layout. `halfA`: see update-tensor.ts; undefined for kernels that only
 * compute A and b, false for fused kernels with A in registers.
 */
export interface Int8Shape {
  readonly rank: number;
  readonly biases: boolean;
  readonly halfA?: boolean;
}

/**
 * Number of bins (of BIN ratings) whose rows of θ are loaded in advance. Two hide more memory latency than
 * one, but need more registers; where that would leave room for fewer workgroups at the same time, it is one.
 * Measured on an H200 at ranks 64, 100, 128 and from 136 to 152, with data of Netflix's shape.
 */
export const BINS_AHEAD = {
  ofSums: (rank: number): 1 | 2 =>
    tilesOf(rank) <= 7 || (tilesOf(rank) === 10 && !hasRatingRow(rank)) ? 2 : 1,
  ofRows: ({ rank, biases }: Int8Shape): 1 | 2 =>
    biases && tilesOf(rank) >= 5 && tilesOf(rank) <= 7 ? 2 : 1,
} as const;

/**
 * Plans the workgroup memory of the 8-bit kernels, and the moves of A through it from the tensor cores. The
 * size of the memory limits the number of workgroups, and so of rows, that a multiprocessor works on at the
 * same time.
 *
 * The memory has a line for each feature of θ, in tiles of 16 lines. Each line ends with 16 bytes of padding.
 * Two ring buffers, of columns and of ratings, are stored in this padding to save memory. Each needs the
 * padding of three tiles that the vectors of CG do not overwrite. If there are no such tiles, for example if
 * CG runs on tensor cores, it is stored after all tiles.
 */
export function int8Plan(shape: Int8Shape): Int8Plan {
  const { rank, biases, halfA = false } = shape;
  const tiles = tilesOf(rank);
  const subgroups = int8Subgroups(shape);
  const tileVectors = tileVectorsOf(lanesOf(shape));
  // Lines for ratings: two lines of digits, and with biases a line of ones.
  const front = hasRatingRow(rank) ? (biases ? 3 : 2) * ROW_VECTORS : 0;
  let staged = front + (tiles - 1) * tileVectors + 16 * ROW_VECTORS;
  let tile = halfA ? tiles : Math.ceil((8 * tiles + 2 * subgroups) / tileVectors);
  const [columns, rated] = range(2).map((): Ring => {
    if (tile + RING_BINS <= tiles) {
      const first = front + tile * tileVectors + ROW_VECTORS - 1;
      tile += RING_BINS;
      return { first, bin: tileVectors, four: ROW_VECTORS };
    }
    const first = staged;
    staged += RING_BINS * RING_VECTORS;
    return { first, bin: RING_VECTORS, four: 1 };
  });
  return { staged, front, columns, rated, plan: planOf(rank, Math.floor(staged / TILE_VECTORS), subgroups) };
}

/** Template values of the shader parts that compute A and b in 8 bits (parts/int8.wgsl). */
export function int8Values(
  shape: Int8Shape,
): Readonly<Record<string, unknown>> & { readonly STAGED: number } {
  const { rank, biases } = shape;
  const tiles = tilesOf(rank);
  const ratingRow = hasRatingRow(rank);
  const lanes = lanesOf(shape);
  const tileVectors = tileVectorsOf(lanes);
  const { staged, front, columns, rated, plan } = int8Plan(shape);
  return {
    RANK: rank,
    PADDED: paddedRank(rank),
    TILES: tiles,
    LOWER_TILES: (tiles * (tiles + 1)) / 2,
    SLOT_VECTORS: slotElements(rank, biases) / 4,
    THREADS: plan.subgroups * 32,
    SUBGROUPS: plan.subgroups,
    BIN,
    LANES_PER_GROUP: lanes,
    ROW_VECTORS,
    TILE_VECTORS: tileVectors,
    ROW_PIECES: int8Pieces(rank),
    STAGED: staged,
    FRONT: front,
    COLUMNS: columns.first,
    COLUMNS_BIN: columns.bin,
    COLUMNS_FOUR: columns.four,
    RATED: rated.first,
    RATED_BIN: rated.bin,
    RATED_FOUR: rated.four,
    RATING_ROW: ratingRow,
    BIASES: biases,
    INT8: true,
    IMPLICIT: false,
    HALF_A: false,
    steps: range(BIN / 32),
    accumulators: range(plan.accumulators),
    deals: plan.deals,
    phases: plan.phases,
    tile_numbers: range(tiles),
    other_subgroups: range(plan.subgroups).slice(1),
  };
}

/** Features that 8-bit kernels need; their vectors and scales are float16 and float32. */
export const int8Needs: readonly GpuFeature[] = ['f16', 'subgroups', 'int8'];

export function int8Workgroup(params: Int8Shape): { readonly threads: number; readonly bytes: number } {
  return { threads: int8Subgroups(params) * 32, bytes: int8Values(params).STAGED * 16 };
}

type NormalEquationsInt8Params = { readonly rank: number; readonly biases: boolean };

/**
 * Computes A and b of rows or parts of rows on tensor cores in 8 bits and writes them to slots
 * (device/slots.ts), like normal-equations-tensor in float16. `fixed` (θ in 8 bits) and `scales` (one for
 * each feature) are outputs of the kernel to-int8. Ratings are multiplied by `scale` and rounded to 16 bits.
 * A part has at most INT8_PART ratings.
 */
export const normalEquationsInt8Kernel = kernelOf<NormalEquationsInt8Params>()({
  name: 'normal-equations-int8',
  reads: {
    work: 'array<vec4<u32>>',
    indices: 'array<u32>',
    values: 'array<f32>',
    fixed: 'array<vec4<u32>>',
    scales: 'array<vec4f>',
    fixed_bias: 'array<f32>',
  },
  writes: { slots: 'array<vec4f>' },
  uniforms: { count: 'u32', zero_row: 'u32', scale: 'f32', unscale: 'f32', mean: 'f32' },
  needs: () => int8Needs,
  values: (params) => ({ ...int8Values(params), sets: range(BINS_AHEAD.ofSums(params.rank)) }),
  workgroup: int8Workgroup,
  samples: [
    { rank: 100, biases: true },
    { rank: 64, biases: true },
    { rank: 128, biases: false },
  ],
});

const THREADS = 256;

/** Rows that one workgroup of column-maxima reads. */
const ROWS = 512;

type Int8Params = { readonly rank: number };

/**
 * Computes the largest |x| of each column of a float16 matrix with `rows` rows, as float32 bits. `maxima`
 * must contain zeros before.
 */
export const columnMaximaKernel = kernelOf<Int8Params>()({
  name: 'column-maxima',
  reads: { half: 'array<vec2u>' },
  writes: { maxima: 'array<atomic<u32>>' },
  uniforms: { rows: 'u32' },
  values({ rank }) {
    const quads = paddedRank(rank) / 4;
    const teams = Math.floor(THREADS / quads);
    return { THREADS: teams * quads, ROWS, QUADS: quads, TEAMS: teams };
  },
  bytes: ({ rank }) => 4 * paddedRank(rank),
  samples: [{ rank: 100 }],
});

/**
 * Rounds the float16 copy of a matrix to 8 bits. Each column has a scale, 1/127 of its largest |x|; an
 * element is its 8-bit number times the scale. `rounded` has `rows` + 1 rows of int8Pieces groups of 16
 * bytes, and the last row is 0.
 */
export const toInt8Kernel = kernelOf<Int8Params>()({
  name: 'to-int8',
  reads: { half: 'array<vec2u>', maxima: 'array<vec4f>' },
  writes: { rounded: 'array<vec4u>', scales: 'array<vec4f>' },
  uniforms: { rows: 'u32' },
  values: ({ rank }) => ({ THREADS, QUADS: paddedRank(rank) / 4, PIECES: int8Pieces(rank) }),
  samples: [{ rank: 100 }],
});

/**
 * Adds to a pass the kernels that round the float16 copy of a matrix to 8 bits. Returns their outputs, which
 * are scratch buffers: they may be overwritten after the pass has ended.
 */
export async function addInt8(
  gpu: Gpu,
  pass: Pass,
  { rows, columns: rank, half }: Pick<DeviceMatrix, 'rows' | 'columns' | 'half'>,
): Promise<{ readonly rounded: GPUBuffer; readonly scales: GPUBuffer }> {
  if (half === undefined) throw new Error('this matrix has no half mirror to round to 8 bits');
  const stride = paddedRank(rank);
  const [scales, rounded] = [
    await gpu.scratch('scales of columns', 4 * stride),
    await gpu.scratch('mirror in 8 bits', int8Bytes(rows, rank)),
  ];
  const maxima = await addColumnMaxima(gpu, pass, { rows, rank, half });
  pass.dispatch(
    await gpu.compile(toInt8Kernel, { rank }),
    { half, maxima, rounded, scales },
    { rows },
    { threads: (rows + 1) * int8Pieces(rank) },
  );
  return { rounded, scales };
}

/**
 * Adds to a pass the kernel that finds the largest |x| of each column of a half mirror. Returns its output, a
 * scratch buffer that the next use overwrites.
 */
export async function addColumnMaxima(
  gpu: Gpu,
  pass: Pass,
  { rows, rank, half }: { readonly rows: number; readonly rank: number; readonly half: GPUBuffer },
): Promise<GPUBuffer> {
  const stride = paddedRank(rank);
  const maxima = await gpu.scratch('column maxima', 4 * stride);
  gpu.device.queue.writeBuffer(maxima, 0, new Uint32Array(stride));
  pass.dispatch(
    await gpu.compile(columnMaximaKernel, { rank }),
    { half, maxima },
    { rows },
    Math.ceil(rows / ROWS),
  );
  return maxima;
}
