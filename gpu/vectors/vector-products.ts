import { kernelOf, range } from '../webgpu/kernel.ts';
import { paddedRank } from '../device/slots.ts';
import { teamNeeds } from '../sgd/sgd-step.ts';
import { productBindings, productUniforms } from './product-kernel.ts';
import { piecesOf, productPieces } from './product-pieces.ts';
import { vectorQuads } from './vectors.ts';

export type VectorProductsParams = {
  readonly rank: number;
  /** Precision of `fixed`: the float32 matrix or its float16 mirror. Sums are float32. */
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  /** With the weights of implicit data. */
  readonly implicit: boolean;
  /** Computes the residual b - A x instead of A p. */
  readonly first: boolean;
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
 * Bindings: see product-kernel.ts.
 */
export const vectorProductsKernel = kernelOf<VectorProductsParams>()({
  name: 'vector-products',
  bindings: productBindings,
  uniforms: productUniforms,
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
  workgroup: ({ rank, threads, width }) => ({
    threads,
    bytes: (threads / width) * (4 * paddedRank(rank) + 16),
  }),
  samples: (
    [
      { rank: 512, precision: 'f16', biases: true, implicit: false, first: true },
      { rank: 264, precision: 'f32', biases: false, implicit: false, first: false },
      { rank: 264, precision: 'f16', biases: false, implicit: true, first: true },
      { rank: 512, precision: 'f32', biases: false, implicit: true, first: false },
    ] as const
  ).map((shape) => ({ ...shape, ...chooseVectorProducts(shape.rank, shape.precision) })),
});
