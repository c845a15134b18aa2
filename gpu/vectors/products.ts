/**
 * Chooses the kernel that multiplies ratings by vectors, for matrix-free conjugate gradients. Rows are cut
 * into parts of ratings. For each part the kernel computes the part's term of A p, or of the residual b - A
 * x, and writes it to the part's slot (layout: vectors.ts).
 */
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import { MOST_FORMED, paddedRank } from '../device/slots.ts';
import { teamNeeds } from '../sgd/sgd-step.ts';
import type { RowBatch } from '../update/prepared-rows.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding, CompiledKernel } from '../webgpu/kernel.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import { vectorQuads } from './vectors.ts';

export type Teams = Pick<VectorProductsParams, 'threads' | 'lanes' | 'width'>;

export interface ProductShape {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  readonly implicit?: ImplicitWeights;
  /** Computes the residual b - A x instead of A p. */
  readonly first: boolean;
  /** The division of ratings among threads, for the kernel with subgroups; default: that kernel's choice. */
  readonly teams?: Teams;
}

/** The buffers of a block of ratings, and of the factors of its columns. */
export interface RatedBuffers {
  readonly indices: Binding;
  readonly values: Binding;
  readonly fixed: Binding;
}

/**
 * Adds a kernel to a pass: it multiplies the parts of a batch of rows by the rows' vectors and writes the
 * results to the parts' slots.
 */
export type Multiply = (pass: Pass, batch: RowBatch, vectors: Binding, slots: Binding) => void;

/** Compiles the kernel that multiplies the ratings of a block by vectors. */
export async function ratingProducts(gpu: Gpu, shape: ProductShape): Promise<(of: RatedBuffers) => Multiply> {
  const { implicit } = shape;
  const compiled = await compileProducts(gpu, shape);
  return (rated) => (pass, batch, vectors, slots) =>
    void pass.dispatch(
      compiled,
      { ...rated, work: batch.parts, vectors, slots },
      { count: batch.partCount, ...(implicit ?? { alpha: 0, base: 0 }) },
      batch.partCount,
    );
}

/** The kernel vector-products up to rank 512, if the adapter has its subgroups; else wide-products. */
function compileProducts(gpu: Gpu, shape: ProductShape): Promise<CompiledKernel> {
  const { rank, precision, biases, first, teams } = shape;
  const parts = { rank, precision, biases, implicit: shape.implicit !== undefined, first };
  const byTeams = { ...parts, ...(teams ?? chooseVectorProducts(rank, precision)) };
  if (rank <= MOST_FORMED && gpu.admits(vectorProductsKernel, byTeams))
    return gpu.compile(vectorProductsKernel, byTeams);
  const widths = teams === undefined ? WIDTHS : [teams.width];
  const width = widths.find((one) => gpu.admits(wideProductsKernel, { ...parts, width: one })) ?? 1;
  return gpu.compile(wideProductsKernel, { ...parts, width });
}

/**
 * Bindings and uniforms of the kernels that multiply the ratings of parts of rows by the rows' vectors. They
 * write one sum for each part, to its slot (layout: vectors.ts). An entry of `work` is a part: row of
 * `vectors`, first rating, number of ratings, slot. `alpha` and `base` are the weights of implicit data.
 */
const productBuffers = {
  reads: {
    work: 'array<vec4u>',
    indices: 'array<u32>',
    values: 'array<f32>',
    fixed: 'array<{{ stored }}>',
    vectors: 'array<vec4f>',
  },
  writes: { slots: 'array<vec4f>' },
  uniforms: { count: 'u32', alpha: 'f32', base: 'f32' },
} as const;

/** Groups of 16 bytes in a row of θ. */
function piecesOf({ rank, precision }: { readonly rank: number; readonly precision: 'f32' | 'f16' }): number {
  return paddedRank(rank) / (precision === 'f16' ? 8 : 4);
}

/**
 * Template values of kernels in which `lanes` threads share a rating and a thread has every `lanes`-th piece
 * of 16 bytes of a row of θ.
 */
function productPieces({
  rank,
  precision,
  lanes,
}: {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly lanes: number;
}) {
  const half = precision === 'f16';
  const perRow = piecesOf({ rank, precision });
  const unpacked = (part: number) =>
    part === 0 ? { open: 'unpacked(', close: '.xy)' } : { open: 'unpacked(', close: '.zw)' };
  const parts = half ? [0, 1] : [0];
  return {
    QUADS: paddedRank(rank) / 4,
    PIECES: perRow,
    half,
    stored: half ? 'vec4u' : 'vec4f',
    pieces: range(Math.ceil(perRow / lanes)).map((at) => ({
      at,
      first: at * lanes,
      guarded: (at + 1) * lanes > perRow,
      vectors: parts.map((part) => ({
        part,
        number: parts.length * at + part,
        ...(half ? unpacked(part) : { open: '', close: '' }),
      })),
    })),
  };
}

/** Shape of the kernels that multiply the ratings of parts of rows by the rows' vectors. */
type PartProducts = {
  readonly rank: number;
  /** Precision of `fixed`: the float32 matrix or its float16 mirror. Sums are float32. */
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  /** With the weights of implicit data. */
  readonly implicit: boolean;
  /** True: computes terms of the residual b - A x. False: computes terms of A p. */
  readonly first: boolean;
};

export type WideProductsParams = PartProducts & {
  /**
   * Threads that add their shares of a product by subgroup operations: 32, 4, or 1 on adapters without
   * subgroups.
   */
  readonly width: number;
};

/** Widths by the features that they need, the fastest first. */
export const WIDTHS = [32, 4, 1] as const;

/** Features of a thread, at most. Its registers hold them of p, of the sum, and of the loaded rows of θ. */
const MOST_FEATURES = 16;

/** Threads of a subgroup on most hardware: a workgroup has whole subgroups, and at least two. */
const SUBGROUP = 32;

/** With more groups of threads than this, their shares are added by a tree instead of one after the other. */
const MOST_SERIAL = 16;

/** Threads of a workgroup, which share each rating. */
export function wideThreads(rank: number): number {
  return Math.max(2 * SUBGROUP, SUBGROUP * Math.ceil(paddedRank(rank) / MOST_FEATURES / SUBGROUP));
}

/**
 * Ratings at a time: 16 loads of 16 bytes of a thread are then in flight. With `tree` they are four, so that
 * the shares of all threads fit workgroup memory.
 */
function eachOf({ precision, rank, width }: WideProductsParams): number {
  return precision === 'f16' && wideThreads(rank) / width <= MOST_SERIAL ? 8 : 4;
}

/**
 * The matrix-free product A p, or the residual b - A x, for parts of rows, at ranks above 512
 * and on adapters without subgroups (else: vector-products). Each row of θ is read once for both products with it. Bindings: see
 * productBuffers.
 */
export const wideProductsKernel = kernelOf<WideProductsParams>()({
  name: 'wide-products',
  ...productBuffers,
  needs: ({ width }) => teamNeeds(width),
  values(params) {
    const { rank, precision, biases, implicit, first, width } = params;
    const threads = wideThreads(rank);
    const each = eachOf(params);
    const groups = threads / width;
    return {
      ...productPieces({ rank, precision, lanes: threads }),
      SLOT_QUADS: vectorQuads(rank, biases).slot,
      THREADS: threads,
      WIDTH: width,
      GROUPS: groups,
      TREE: 2 ** Math.max(0, Math.ceil(Math.log2(groups)) - 1),
      EACH: each,
      FOURS: each / 4,
      FIRST: first,
      tree: groups > MOST_SERIAL,
      implicit,
      rates: first || implicit,
      sums_rows: first && biases,
      each: range(each),
      fours: range(each / 4).map((at) => ({ at, each: range(4).map((e) => 4 * at + e) })),
      distances: range(Math.log2(width)).map((bit) => 2 ** bit),
    };
  },
  bytes: (params) => (2 * 16 * (eachOf(params) / 4) * wideThreads(params.rank)) / params.width,
  samples: [
    { rank: 1024, precision: 'f16', biases: true, implicit: false, first: true, width: 32 },
    { rank: 600, precision: 'f32', biases: false, implicit: true, first: true, width: 4 },
    { rank: 4096, precision: 'f16', biases: false, implicit: true, first: false, width: 1 },
    { rank: 4096, precision: 'f32', biases: false, implicit: false, first: false, width: 32 },
  ],
});

export type VectorProductsParams = PartProducts & {
  readonly threads: number;
  /** Threads that share a rating: a power of two. */
  readonly lanes: number;
  /**
   * Threads that add their sums by subgroup operations: a multiple of `lanes`, at most the size of a
   * subgroup.
   */
  readonly width: number;
};

/**
 * Loads of 16 bytes of θ that a thread issues before it uses the first. They are the thread's features of two
 * or four ratings.
 */
const IN_FLIGHT = 8;

/**
 * Chooses the number of threads that share a rating. With fewer threads, each has more features: a rating
 * needs fewer sums across threads, and no thread is idle. But a thread's registers must hold its features of
 * p, of the sum and of the loads that it has issued.
 */
export function chooseVectorProducts(
  rank: number,
  precision: 'f32' | 'f16',
): Pick<VectorProductsParams, 'threads' | 'lanes' | 'width'> {
  const most = precision === 'f16' ? 5 : 8;
  const lanes = [8, 16, 32].find((count) => Math.ceil(piecesOf({ rank, precision }) / count) <= most) ?? 32;
  return { threads: 64, lanes, width: 32 };
}

/**
 * The matrix-free product A p, or the residual b - A x, for parts of rows, on adapters with subgroups.
 * Bindings: see productBuffers.
 */
export const vectorProductsKernel = kernelOf<VectorProductsParams>()({
  name: 'vector-products',
  ...productBuffers,
  needs: ({ width }) => teamNeeds(Math.max(2, width)),
  values({ rank, precision, biases, implicit, first, threads, lanes, width }) {
    const quads = paddedRank(rank) / 4;
    const pieces = productPieces({ rank, precision, lanes });
    const each = 2 * pieces.pieces.length <= IN_FLIGHT / 2 ? 4 : 2;
    return {
      ...pieces,
      SLOT_QUADS: vectorQuads(rank, biases).slot,
      TEAM_QUADS: quads + 1,
      THREADS: threads,
      LANES: lanes,
      TEAMS: threads / lanes,
      GROUPS: threads / width,
      WIDTH: width,
      EACH: each,
      FIRST: first,
      implicit,
      rates: first || implicit,
      sums_rows: first && biases,
      each: range(each),
      distances: range(Math.log2(lanes)).map((bit) => 2 ** bit),
      merges: range(Math.log2(width / lanes)).map((bit) => lanes * 2 ** bit),
    };
  },
  bytes: ({ rank, threads, width }) => (threads / width) * (4 * paddedRank(rank) + 16),
  samples: (
    [
      { rank: 512, precision: 'f16', biases: true, implicit: false, first: true },
      { rank: 264, precision: 'f32', biases: false, implicit: false, first: false },
      { rank: 264, precision: 'f16', biases: false, implicit: true, first: true },
      { rank: 512, precision: 'f32', biases: false, implicit: true, first: false },
    ] as const
  ).map((shape) => ({ ...shape, ...chooseVectorProducts(shape.rank, shape.precision) })),
});
