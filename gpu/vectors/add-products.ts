import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { vectorQuads } from './vectors.ts';

export type AddProductsParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** True: the sums are gradients, which also contain n and three more numbers. False: they are products. */
  readonly first: boolean;
};

const THREADS = 64;

/**
 * For each entry of the list (row, first slot, n, number of slots): sums the entry's slots (vectors.ts) in
 * order, and adds the result to its row of `sums`.
 */
export const addProductsKernel = kernelOf<AddProductsParams>()({
  name: 'add-products',
  bindings: [...reads({ work: 'array<vec4u>', slots: 'array<vec4f>' }), ...writes({ sums: 'array<vec4f>' })],
  uniforms: { count: 'u32' },
  needs: () => [],
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
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [
    { rank: 40, biases: true, first: true },
    { rank: 40, biases: false, first: false },
  ],
});
