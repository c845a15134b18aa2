import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { vectorQuads } from './vectors.ts';

export type AddProductsParams = {
  readonly rank: number;
  readonly biases: boolean;
  /**
   * True: `sums` has gradients (residuals and the numbers n, t, along and s, see
   * operators/tasks/vector-tasks.ts). False: `sums` has products of A with vectors.
   */
  readonly first: boolean;
};

const THREADS = 64;

/**
 * Adds to each listed row of `sums` the row's slots, in order. A row's ratings are cut into parts, and a slot
 * has the sum over one part (layout: vectors.ts). An entry of `work`: row, first slot, number n of ratings,
 * number of slots.
 */
export const addProductsKernel = kernelOf<AddProductsParams>()({
  name: 'add-products',
  bindings: [...reads({ work: 'array<vec4u>', slots: 'array<vec4f>' }), ...writes({ sums: 'array<vec4f>' })],
  uniforms: { count: 'u32' },
  values({ rank, biases, first }) {
    const { quads, gradients, slot } = vectorQuads(rank, biases);
    return {
      THREADS,
      QUADS: quads,
      ROW_QUADS: first ? gradients : quads,
      SLOT_QUADS: slot,
      USED: first ? slot : quads,
      FIRST: first,
    };
  },
  samples: [
    { rank: 40, biases: true, first: true },
    { rank: 40, biases: false, first: false },
  ],
});
