import { kernelOf } from '../webgpu/kernel.ts';
import { paddedRank } from '../device/slots.ts';
import { productBindings, productUniforms } from './product-kernel.ts';
import { laneValues } from './row-lanes.ts';
import { type Tile, tileBytes, tileValues } from './tiles.ts';
import { vectorQuads } from './vectors.ts';

export type PartProductsParams = {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  /** With the weights of implicit data. */
  readonly implicit: boolean;
  /** True: computes terms of the residual b - A x. False: computes terms of A p. */
  readonly first: boolean;
};

const TILE_BYTES = 12_288;

/** The number of ratings whose rows of θ fit workgroup memory at a time: a power of two. */
function tileOf({ rank, precision }: Pick<PartProductsParams, 'rank' | 'precision'>): Tile {
  const row = 4 * paddedRank(rank) + 16;
  const ratings = [16, 8, 4, 2].find((count) => count * row <= TILE_BYTES) ?? 1;
  return { rank, precision, ratings, lanes: 64, rows: 1 };
}

/**
 * Multiplies the ratings of parts of rows by the rows' vectors, on adapters without subgroups. Bindings: see
 * product-kernel.ts.
 */
export const partProductsKernel = kernelOf<PartProductsParams>()({
  name: 'part-products',
  bindings: productBindings,
  uniforms: productUniforms,
  needs: () => [],
  values(params) {
    const { rank, biases, implicit, first } = params;
    const tile = tileOf(params);
    return {
      ...laneValues(rank, tile),
      ...tileValues(tile),
      SLOT_QUADS: vectorQuads(rank, biases).slot,
      FIRST: first,
      sum: first ? 'r' : 'q',
      implicit,
      sums_rows: first && biases,
    };
  },
  workgroup: (params) => ({ threads: tileOf(params).lanes, bytes: tileBytes(tileOf(params)) }),
  samples: [
    { rank: 100, precision: 'f32', biases: true, implicit: false, first: true },
    { rank: 40, precision: 'f16', biases: false, implicit: true, first: true },
    { rank: 512, precision: 'f32', biases: false, implicit: true, first: false },
  ],
});
