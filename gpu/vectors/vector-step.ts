import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { laneValues, rowLanes } from './row-lanes.ts';
import { vectorQuads } from './vectors.ts';

export type VectorStepParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** With a Gram matrix, which A of implicit data contains. */
  readonly implicit: boolean;
  /**
   * True: rows are taken from a list (row, first slot, number n of ratings, number of slots), and the
   * products are in their slots. False: the rows are consecutive.
   */
  readonly listed: boolean;
  readonly phase: 'gather' | 'begin' | 'step';
};

/**
 * One phase of matrix-free conjugate gradients, on vectors in buffers (layouts: vectors.ts). A row's vectors
 * in `gradients` and `direction` have the index of its entry in the list, or without a list the row's number.
 * `gram` is only read for implicit data and `work` only with a list; otherwise any buffer may be bound.
 *
 * | rank | `gram` |
 * |---|---|
 * | to 128 | the Gram matrix, which each row multiplies by its vector |
 * | above | products of the Gram matrix and the directions of these rows, from gram-products |
 */
export const vectorStepKernel = kernelOf<VectorStepParams>()({
  name: 'vector-step',
  bindings: [
    ...reads({
      work: 'array<vec4u>',
      /**
       * | phase | listed rows | consecutive rows |
       * |---|---|---|
       * | `gather` | x of the previous iteration | the same |
       * | `begin` | slots of the residual | not read |
       * | `step` | slots of A p | A p of whole rows |
       */
      given: 'array<vec4f>',
      gram: 'array<vec4f>',
      shifts: 'array<f32>',
    }),
    ...writes({ gradients: 'array<vec4f>', factors: 'array<vec4f>', direction: 'array<vec4f>' }),
  ],
  /** `first`: the first of consecutive rows. */
  uniforms: { count: 'u32', first: 'u32' },
  values(params) {
    const { rank, biases, listed } = params;
    const { quads, gradients, slot } = vectorQuads(rank, biases);
    return {
      ...params,
      ...laneValues(rank, rowLanes(rank)),
      ...shiftValues(biases),
      multiplies: params.implicit && !isMultiplied(rank),
      ROW_QUADS: gradients,
      GIVEN_QUADS: listed ? slot : quads,
    };
  },
  workgroup({ rank, implicit }) {
    const { lanes, rows } = rowLanes(rank);
    const vectors = implicit && !isMultiplied(rank) ? 16 * rows * vectorQuads(rank, false).quads : 0;
    return { threads: lanes * rows, bytes: 8 * lanes * rows + vectors };
  },
  samples: (['gather', 'begin', 'step'] as const).flatMap((phase) => [
    { rank: 264, biases: true, implicit: false, listed: true, phase },
    { rank: 40, biases: false, implicit: true, listed: false, phase },
    { rank: 264, biases: false, implicit: true, listed: true, phase },
    { rank: 4096, biases: false, implicit: true, listed: true, phase },
  ]),
});

/**
 * The largest rank at which each row multiplies the Gram matrix by its own vector: it then fits a fast
 * cache.
 */
const MOST_IN_ROW = 128;

/**
 * True at ranks at which gram-products multiplies the vectors of many rows by the Gram matrix. A row alone
 * would read the whole matrix for one product.
 */
export function isMultiplied(rank: number): boolean {
  return rank > MOST_IN_ROW;
}
