import { kernelOf, range } from '../webgpu/kernel.ts';
import { paddedRank } from '../device/slots.ts';
import { teamNeeds } from '../sgd/sgd-step.ts';
import { productBindings, productUniforms } from './product-kernel.ts';
import { productPieces } from './product-pieces.ts';
import { vectorQuads } from './vectors.ts';

export type WideProductsParams = {
  readonly rank: number;
  /** Precision of `fixed`: the float32 matrix or its float16 mirror. Sums are float32. */
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  /** With the weights of implicit data. */
  readonly implicit: boolean;
  /** True: computes terms of the residual b - A x. False: computes terms of A p. */
  readonly first: boolean;
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
 * product-kernel.ts.
 */
export const wideProductsKernel = kernelOf<WideProductsParams>()({
  name: 'wide-products',
  bindings: productBindings,
  uniforms: productUniforms,
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
  workgroup: (params) => ({
    threads: wideThreads(params.rank),
    bytes: (2 * 16 * (eachOf(params) / 4) * wideThreads(params.rank)) / params.width,
  }),
  samples: [
    { rank: 1024, precision: 'f16', biases: true, implicit: false, first: true, width: 32 },
    { rank: 600, precision: 'f32', biases: false, implicit: true, first: true, width: 4 },
    { rank: 4096, precision: 'f16', biases: false, implicit: true, first: false, width: 1 },
    { rank: 4096, precision: 'f32', biases: false, implicit: false, first: false, width: 32 },
  ],
});
