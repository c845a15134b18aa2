import type { DeviceMatrix } from '../device/resources.ts';
import { MOST_FORMED, paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import {
  chooseNormalEquations,
  normalEquationsKernel,
  normalEquationsWorkgroups,
} from '../equations/normal-equations.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { EntryList } from '../update/deal-rows.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { type CompiledKernel, kernelOf, range } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';

/**
 * The task `gram` (see KernelTasks) on a GPU: computes the whole Gram matrix of a side's factors in float32.
 */
export const gram: GpuTaskHandler<'gram'> = async (scope) => {
  const { rank, weight } = scope.params;
  const factors = scope.matrix('factors');
  const pass = scope.gpu.pass('gram');
  await addGramMatrix(scope.gpu, pass, factors, scope.matrix('gram').values, rank, weight);
  await pass.submit({ submitted: scope.submitted });
  return { rows: factors.rows };
};

/**
 * Θ is divided into ranges of rows, whose products θ_v θ_vᵀ are summed in parallel into slots of scratch
 * memory. PARTS: most ranges, enough to fill any GPU. PART_BYTES: most bytes of all slots. LEAST_ROWS: fewest
 * rows of a range.
 */
const PARTS = 1056;
const PART_BYTES = 128 << 20;
const LEAST_ROWS = 256;

/** The lists of ranges that were uploaded, cached for each GPU by the number of rows and a range's size. */
const lists = new WeakMap<
  Gpu,
  Map<string, { readonly work: GPUBuffer; readonly indices: GPUBuffer; readonly count: number }>
>();

/**
 * Adds to a pass the two kernels that compute the Gram matrix G = weight ΘᵀΘ in float32. The first sums θ_v
 * θ_vᵀ over ranges of rows of Θ into slots. To rank 512 it is the kernel of normal equations, as if each
 * range were a row that has rated these v. The second adds the slots.
 */
export async function addGramMatrix(
  gpu: Gpu,
  pass: Pass,
  { rows, values }: DeviceMatrix,
  gram: GPUBuffer,
  rank: number,
  weight: number,
): Promise<void> {
  const size = rowsOfPart(gpu.info, rows, rank);
  const { work, indices, count } = await partsOf(gpu, rows, size);
  const { workgroups, kernels } = gramKernels(gpu, rank);
  const [parts, sum] = await Promise.all(kernels);
  const slots = await gpu.scratch('slots', gramSlotBytes(gpu.info, rows, rank));
  // Normal equations have a b of ratings, which is not used here. So any buffer may be bound for ratings.
  pass.dispatch(
    parts,
    { work, indices, values, fixed: values, slots },
    { count, alpha: 0, base: 0 },
    workgroups(count),
  );
  pass.dispatch(
    sum,
    { slots, gram },
    { slot_count: count, weight },
    { threads: paddedRank(rank) ** 2 * lanesOf({ rank }) },
  );
}

/** Starts to compile both kernels. */
export function gramKernels(gpu: Gpu, rank: number) {
  const { parts, workgroups } = partsKernel(gpu, rank);
  return { workgroups, kernels: [parts, gpu.compile(gramSumKernel, { rank })] as const };
}

/** The kernel that sums ranges of rows into slots, and its workgroups for a number of ranges. */
function partsKernel(
  gpu: Gpu,
  rank: number,
): { readonly parts: Promise<CompiledKernel>; workgroups(count: number): number } {
  if (rank > MOST_FORMED)
    return {
      parts: gpu.compile(wideGramKernel, { rank }),
      workgroups: (count) => wideGramWorkgroups({ rank }, count),
    };
  const params = chooseNormalEquations(rank, 'f32', false);
  return {
    parts: gpu.compile(normalEquationsKernel, params),
    workgroups: (count) => normalEquationsWorkgroups(params, count),
  };
}

function rowsOfPart({ limits }: GpuInfo, rows: number, rank: number): number {
  const slots = Math.floor(Math.min(PART_BYTES, limits.bindingBytes) / (4 * slotElements(rank, false)));
  return Math.max(LEAST_ROWS, Math.ceil(rows / Math.max(1, Math.min(PARTS, slots))));
}

export function gramSlotBytes(info: GpuInfo, rows: number, rank: number): number {
  return Math.ceil(rows / rowsOfPart(info, rows, rank)) * slotElements(rank, false) * 4;
}

async function partsOf(gpu: Gpu, rows: number, size: number) {
  const known =
    lists.get(gpu) ??
    new Map<string, { readonly work: GPUBuffer; readonly indices: GPUBuffer; readonly count: number }>();
  lists.set(gpu, known);
  const key = `${rows} ${size}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const list = new EntryList();
  for (let first = 0; first < rows; first += size)
    list.add(0, first, Math.min(size, rows - first), list.count);
  const { entries, count } = list.list;
  const made = {
    work: await gpu.bufferOf(entries, 'parts of a Gram matrix'),
    indices: await gpu.bufferOf(
      Uint32Array.from({ length: rows }, (_, row) => row),
      'rows of a Gram matrix',
    ),
    count,
  };
  known.set(key, made);
  return made;
}

/** Threads of a workgroup that computes a tile of 64 x 64 sums; see parts/slabs.wgsl. */
const TILE_THREADS = 64;

/**
 * The eight rows of a thread's sums: `offset` from its first row, and the component of the quad of the left
 * slab that has the row.
 */
const tileSums = range(8).map((i) => ({
  name: i,
  half: Math.floor(i / 4),
  component: 'xyzw'[i % 4],
  offset: 32 * Math.floor(i / 4) + (i % 4),
}));

type GramSumParams = { readonly rank: number };

const THREADS = 256;

/**
 * Threads that share the sum of one element of G: each adds every eighth slot. Large matrices have enough
 * elements for all threads, and few slots.
 */
function lanesOf({ rank }: GramSumParams): number {
  return rank > MOST_FORMED ? 1 : 8;
}

/**
 * Computes the Gram matrix G = weight ΘᵀΘ, F x F (F: rank padded to whole tiles), with zeros beyond the rank.
 * Input: `slot_count` slots (device/slots.ts), each with ΘᵀΘ of some of the rows of Θ. They are added in a
 * fixed order.
 */
export const gramSumKernel = kernelOf<GramSumParams>()({
  name: 'gram-sum',
  reads: { slots: 'array<f32>' },
  writes: { gram: 'array<f32>' },
  uniforms: { slot_count: 'u32', weight: 'f32' },
  values: ({ rank }) => ({
    THREADS,
    LANES: lanesOf({ rank }),
    ELEMENTS: THREADS / lanesOf({ rank }),
    RANK: rank,
    STRIDE: paddedRank(rank),
    SLOT: slotElements(rank, false),
  }),
  bytes: (params) => (lanesOf(params) > 1 ? 4 * THREADS : 0),
  samples: [{ rank: 40 }, { rank: 528 }],
});

type WideGramParams = { readonly rank: number };

/** Rows of θ, or of the Gram matrix, in workgroup memory at a time. */
const SLAB = 16;

/** Tiles of 64 x 64 elements that contain the lower triangle. */
function blocksOf(rank: number): number {
  const side = Math.ceil(tilesOf(rank) / 4);
  return (side * (side + 1)) / 2;
}

function wideGramWorkgroups({ rank }: WideGramParams, parts: number): number {
  return parts * blocksOf(rank);
}

/**
 * Sums θ_v θ_vᵀ over ranges of rows of Θ into slots, for the Gram matrix at ranks at which normal-equations
 * does not run. An entry of `work`: 0, first row, number of rows, slot.
 */
export const wideGramKernel = kernelOf<WideGramParams>()({
  name: 'wide-gram',
  reads: { work: 'array<vec4u>', fixed: 'array<vec4f>' },
  writes: { slots: 'array<vec4f>' },
  uniforms: { count: 'u32' },
  values: ({ rank }) => ({
    THREADS: TILE_THREADS,
    SLAB,
    TILES: tilesOf(rank),
    QUADS: 4 * tilesOf(rank),
    BLOCKS: blocksOf(rank),
    SLOT_QUADS: slotElements(rank, false) / 4,
    sums: tileSums,
  }),
  bytes: 2 * SLAB * 256,
  samples: [{ rank: 528 }],
});

type GramProductsParams = { readonly rank: number };

function columnTiles(rank: number): number {
  return Math.ceil(paddedRank(rank) / 64);
}

/** Workgroups that multiply the vectors of `rows` rows. */
export function gramProductsWorkgroups({ rank }: GramProductsParams, rows: number): number {
  return Math.ceil(rows / 64) * columnTiles(rank);
}

/**
 * Multiplies the vectors of `count` rows by the Gram matrix, for CG without A of implicit data at ranks above
 * 128. The product of row `first` is the first one of `products`.
 */
export const gramProductsKernel = kernelOf<GramProductsParams>()({
  name: 'gram-products',
  reads: { vectors: 'array<vec4f>', gram: 'array<vec4f>' },
  writes: { products: 'array<vec4f>' },
  uniforms: { count: 'u32', first: 'u32' },
  values: ({ rank }) => ({
    THREADS: TILE_THREADS,
    SLAB,
    QUADS: paddedRank(rank) / 4,
    COLUMN_TILES: columnTiles(rank),
    sums: tileSums,
    components: ['x', 'y', 'z', 'w'],
  }),
  bytes: 2 * SLAB * 256,
  samples: [{ rank: 144 }, { rank: 528 }],
});

type AddGramParams = { readonly rank: number };

const ADD_THREADS = 64;

/**
 * For implicit data: adds the Gram matrix G to A of each row that has ratings. A is in the row's first slot
 * of scratch memory (device/slots.ts). A workgroup has one entry (row, first slot, n, number of slots) of the
 * list. `gram`: G as F x F matrix (F: rank padded to whole 16 x 16 tiles).
 */
export const addGramKernel = kernelOf<AddGramParams>()({
  name: 'add-gram',
  reads: { work: 'array<vec4u>', gram: 'array<vec4f>' },
  writes: { slots: 'array<vec4f>' },
  uniforms: { count: 'u32' },
  values: ({ rank }) => ({
    THREADS: ADD_THREADS,
    TILES: tilesOf(rank),
    SLOT_QUADS: slotElements(rank, false) / 4,
  }),
  samples: [{ rank: 40 }],
});
